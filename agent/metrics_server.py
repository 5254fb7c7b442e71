"""`agent metrics`: one page for Prometheus, measured when it is asked for."""

from __future__ import annotations

import hmac
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent import __version__
from agent.exposition import Page, add_gpus, gpu_labels
from agent.exposition_host import add_host
from agent.one_sample import GpuQuestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.exposition import Labels

log = logging.getLogger("rackrent.metrics")

DEFAULT_LISTEN = "127.0.0.1:9469"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_RETRY_SECONDS = 60.0


class ListenError(ValueError):
    """An address that may not be listened on as asked; the message says what to add."""


class Collector:
    """Keeps one NVML process and asks it at each scrape; scrapes take turns."""

    def __init__(self, host_label: str) -> None:
        self._host_label = {host_label: socket.gethostname()}
        self._lock = threading.Lock()
        self._gpus = GpuQuestion()
        self._started_at: float | None = None
        self._xids: dict[tuple[str, int], int] = {}
        self._last_xid: dict[str, int] = {}

    def page(self) -> str:
        began = time.monotonic()
        page = Page()
        add_host(page)
        with self._lock:
            rows = self._sample()
            add_gpus(page, rows, self._gpus.inventory, self._host_label)
            self._add_xids(page, gpu_labels(self._gpus.inventory, self._host_label))
            self._add_self(page, rows, time.monotonic() - began)
        return page.text()

    def close(self) -> None:
        self._gpus.stop()

    def _sample(self) -> list[dict[str, object]]:
        now = time.monotonic()
        if self._gpus.state != "ok" and (self._started_at is None or now >= self._started_at + _RETRY_SECONDS):
            self._started_at = now
            self._gpus.start()
        rows = self._gpus.sample() if self._gpus.state == "ok" else []
        for event in self._gpus.events:
            self._note(event)
        self._gpus.events.clear()
        return rows

    def _note(self, event: dict[str, object]) -> None:
        uuid, code = event.get("gpu"), event.get("code")
        if event.get("kind") == "xid" and isinstance(uuid, str) and isinstance(code, int):
            self._xids[uuid, code] = self._xids.get((uuid, code), 0) + 1
            self._last_xid[uuid] = code

    def _add_xids(self, page: Page, labels: dict[str, Labels]) -> None:
        """DCGM's gauge holds the number of the last XID for ever; the counter beside it tells a second one of the same number."""
        last = [(labels[uuid], float(code)) for uuid, code in self._last_xid.items() if uuid in labels]
        page.add("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", last)
        counted = [({"UUID": uuid, "xid": str(code)}, float(count)) for (uuid, code), count in self._xids.items()]
        page.add("rackrent_agent_xid_errors_total", "counter", "XID errors since this process began.", counted)

    def _add_self(self, page: Page, rows: list[dict[str, object]], seconds: float) -> None:
        page.add("rackrent_agent_build_info", "gauge", "Version of the agent.", [({"version": __version__}, 1)])
        page.add("rackrent_agent_nvml_state", "gauge", "State of NVML as a label.", [({"state": self._gpus.state}, 1)])
        page.add("rackrent_agent_gpus", "gauge", "GPUs and MIG instances known.", [({}, len(self._gpus.inventory))])
        lost = sum(1 for row in rows if row.get("state") == "lost")
        page.add("rackrent_agent_gpus_lost", "gauge", "GPUs that the driver no longer reaches.", [({}, lost)])
        # No visible GPU on a machine with NVIDIA's library is a failure, not an idle machine
        good = bool(rows) or self._gpus.state == "absent"
        page.add("rackrent_agent_last_collect_success", "gauge", "Whether GPUs could be read.", [({}, int(good))])
        page.add("rackrent_agent_last_collect_duration_seconds", "gauge", "How long this page took.", [({}, seconds)])


def serve(listen: str, token: str, host_label: str) -> ThreadingHTTPServer:
    """A server that is not yet running; close its ``collector`` afterwards. Raises ListenError, OSError."""
    host, port = parse_listen(listen, has_token=bool(token))
    collector = Collector(host_label)

    class Handler(BaseHTTPRequestHandler):
        server_version = "rackrent-agent"
        sys_version = ""
        timeout = 30

        def do_GET(self) -> None:
            if self.path.split("?", 1)[0] != "/metrics":
                self._answer(404, "the page is /metrics\n")
            elif token and not hmac.compare_digest(
                self.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()
            ):
                self._answer(401, "a bearer token is needed\n")
            else:
                self._answer(200, collector.page())

        def _answer(self, status: int, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the base class's name
            log.debug(format, *arguments)

    server = _Server((host, port), Handler)
    server.collector = collector
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    collector: Collector

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_close(self) -> None:
        super().server_close()
        self.collector.close()


def parse_listen(listen: str, *, has_token: bool) -> tuple[str, int]:
    """Host and port. Beyond loopback only with a token: figures of a machine are its renter's business."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise ListenError(f"{listen!r} is no address: write HOST:PORT, as in {DEFAULT_LISTEN}")
    if host not in _LOOPBACK and not has_token:
        raise ListenError(f"{host} can be reached by others: add --token-file FILE, or listen on 127.0.0.1")
    return host, int(port)
