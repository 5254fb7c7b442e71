"""Reading engines over loopback: which are asked, what a bad one costs, and that the samples come out once."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent.serving import page as page_module
from agent.serving.address import Address, parse_address
from agent.serving.discovery import EngineScan, address_of
from agent.serving.page import PageError, fetch_page
from agent.serving.probe import ServingProbe
from tests.agent import engine_pages


class FakeEngine(HTTPServer):
    """Serves `text` at /metrics, and elsewhere what its path says."""

    def __init__(self) -> None:
        self.text = engine_pages.vllm()
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> Address:
        return Address(self.server_port)


class _Handler(BaseHTTPRequestHandler):
    server: FakeEngine

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status = {"/metrics": 200, "/away": 302}.get(self.path, 404)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://169.254.169.254/")
        self.end_headers()
        self.wfile.write(self.server.text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    server = FakeEngine()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@contextlib.contextmanager
def answering(answer: bytes, *, ends: bool = True) -> Iterator[int]:
    """The port of a listener that sends one answer, whatever is asked, and hangs up behind it or at the end of the block."""
    over = threading.Event()
    if ends:
        over.set()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer, args=(listener, answer, over))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def _answer(listener: socket.socket, answer: bytes, over: threading.Event) -> None:
    accepted, _ = listener.accept()
    with accepted, contextlib.suppress(OSError):
        accepted.recv(4096)
        accepted.sendall(answer)
        over.wait(30)


def test_a_sample_of_its_own_comes_out_once(engine: FakeEngine) -> None:
    probe = ServingProbe([engine.address])
    probe.read()
    (sample,) = probe.take()
    assert set(sample) == {"at", "serving"}
    row = sample["serving"][0]  # type: ignore[index]  # a list of rows
    assert (row["port"], row["engine"], row["requests_running"]) == (engine.server_port, "vllm", 3.0)
    assert probe.take() == []


def test_what_is_not_taken_does_not_pile_up(engine: FakeEngine) -> None:
    probe = ServingProbe([engine.address])
    for _ in range(120):
        probe.read()
    assert len(probe.take()) == 90


def test_an_engine_that_is_down_costs_only_itself_and_is_told_once(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = free.getsockname()[1]
    caplog.set_level("INFO", "rackrent.serving")
    probe = ServingProbe([Address(closed), engine.address])
    probe.read()
    probe.read()
    assert len(probe.take()) == 2
    assert [record.message for record in caplog.records if str(closed) in record.message] != []
    assert len([record for record in caplog.records if str(closed) in record.message]) == 1


def test_a_slow_engine_keeps_its_counters_and_a_dead_one_does_not(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent.serving import probe as probe_module

    failures: list[Exception] = []

    def fetch(address: Address) -> str:
        if failures:
            raise failures.pop()
        return engine.text

    monkeypatch.setattr(probe_module, "fetch_page", fetch)
    probe = ServingProbe([engine.address])
    grown = []
    for failure in (TimeoutError("slow"), ConnectionRefusedError("gone")):
        probe.read()
        failures.append(failure)
        probe.read()
        probe.take()
        probe.read()
        (sample,) = probe.take()
        grown.append("requests_finished" in sample["serving"][0])  # type: ignore[index]  # a list of rows
    assert grown == [True, False]


class TestPages:
    @pytest.mark.parametrize("path", ["/away", "/other"])
    def test_only_a_page_that_is_there_is_read_and_redirects_lead_nowhere(self, engine: FakeEngine, path: str) -> None:
        with pytest.raises(PageError):
            fetch_page(Address(engine.server_port, path))
        assert engine.asked == [path]

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"garbage",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (5 << 20),
        ],
    )
    def test_what_is_no_plain_answer_is_refused(self, answer: bytes) -> None:
        with answering(answer) as port, pytest.raises((PageError, OSError)):
            fetch_page(Address(port))

    def test_an_answer_that_never_ends_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(page_module, "_DEADLINE_SECONDS", 0.2)
        with answering(b"HTTP/1.1 200 OK\r\n\r\nvllm:", ends=False) as port, pytest.raises(TimeoutError):
            fetch_page(Address(port))


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "host", "port", "path"),
        [
            ("http://127.0.0.1:8000/metrics", "127.0.0.1", 8000, "/metrics"),
            ("http://localhost:3000", "127.0.0.1", 3000, "/metrics"),
            ("http://[::1]:8000/prometheus/metrics", "::1", 8000, "/prometheus/metrics"),
        ],
    )
    def test_on_loopback(self, url: str, host: str, port: int, path: str) -> None:
        address = parse_address(url)
        assert (address.host, address.port, address.path) == (host, port, path)

    @pytest.mark.parametrize(
        "url",
        [
            "http://10.0.0.5:8000/metrics",
            "http://169.254.169.254/latest",
            "http://engine.example/metrics",
            "https://127.0.0.1:8000/metrics",
            "http://127.0.0.1:99999/metrics",
            "http://127.0.0.1.example/metrics",
            "http://me@127.0.0.1/metrics",
            "http://127.0.0.1:8000/metrics?x=1",
            "http://127.0.0.1:8000/a\r\nHost: x",
            "file:///etc/passwd",
            "",
        ],
    )
    def test_nothing_else(self, url: str) -> None:
        with pytest.raises(ValueError, match=r"127\.0\.0\.1:PORT|[Pp]ort"):
            parse_address(url)


class TestDiscovery:
    @pytest.mark.parametrize(
        ("line", "port", "path"),
        [
            ("/usr/bin/python3 /usr/local/bin/vllm serve meta-llama/Llama --port 8001", 8001, "/metrics"),
            ("python3 -m vllm.entrypoints.openai.api_server --model x", 8000, "/metrics"),
            ("/usr/bin/vllm serve x --port=9000", 9000, "/metrics"),
            ("text-generation-router --max-concurrent-requests 128 --port 80", 80, "/metrics"),
            ("/usr/local/bin/text-generation-router", 3000, "/metrics"),
            ("/usr/bin/python3 /usr/local/bin/trtllm-serve serve llama --port 8100", 8100, "/prometheus/metrics"),
            ("/opt/tritonserver/bin/tritonserver --model-repository=/models", 8002, "/metrics"),
            ("tritonserver --metrics-port=9102", 9102, "/metrics"),
        ],
    )
    def test_engines_say_where_they_are(self, line: str, port: int, path: str) -> None:
        address = address_of(line.split())
        assert address is not None
        assert (address.host, address.port, address.path) == ("127.0.0.1", port, path)

    @pytest.mark.parametrize(
        "line",
        [
            "",
            "vim vllm",
            "nginx --port 8000",
            "grep -r vllm serve",
            "vllm bench --port 8000",
            "vllm serve x --port many",
            "vllm serve x --port 70000",
            "vllm serve x --port",
            "vllm serve x --ssl-certfile /c.pem",
        ],
    )
    def test_anything_else_is_not_asked(self, line: str) -> None:
        assert address_of(line.split()) is None

    def test_processes_are_looked_at_once_and_forgotten_when_they_end(self, machine: Path) -> None:
        def start(pid: int, *words: str) -> None:
            (machine / f"proc/{pid}").mkdir()
            (machine / f"proc/{pid}/cmdline").write_text("\0".join(words) + "\0")

        start(7, "vllm", "serve", "x")
        start(8, "bash")
        (machine / "proc/9").mkdir()
        scan = EngineScan(f"{machine}/")
        assert [address.port for address in scan.addresses()] == [8000]
        (machine / "proc/7/cmdline").unlink()
        assert [address.port for address in scan.addresses()] == [8000]
        (machine / "proc/7").rmdir()
        assert scan.addresses() == []

    def test_a_machine_without_engines_asks_nobody(self, machine: Path) -> None:
        probe = ServingProbe(None, root=f"{machine}/")
        probe.read()
        assert probe.take() == []
