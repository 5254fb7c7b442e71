"""An engine that runs on a machine: found by the real agent, read over loopback, and on the machine's page."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.inventory.models import Instance
from fleet.telemetry.models import Agent
from fleet.telemetry.serving.models import ServingLatest, ServingRollupHour, ServingSample
from tests.agent.engine_pages import vllm
from tests.contracts.test_agent_ingest import Machine, address, machine, token, wait_until

__all__ = ["address", "machine", "token"]
pytestmark = pytest.mark.django_db(transaction=True)

# What stands for vLLM: it answers with a page whose counters have gone on each time.
ENGINE = """
import http.server, sys

pages = sys.stdin.read().split("---")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = pages.pop(0) if len(pages) > 1 else pages[0]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""


@pytest.fixture
def engine_port(tmp_path: Path) -> Iterator[int]:
    """The port of a process that is called as vLLM is."""
    program = tmp_path / "vllm"
    program.write_text(ENGINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = [sys.executable, str(program), "serve", "org/llama", "--port", str(port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(
            vllm(stopped=100) + "---" + vllm(stopped=118, aborted=2, prompt=56_000, ttft=(70, 108, 120))
        )
        process.stdin.close()
        wait_until(lambda: _listens(port))
        yield port
        process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_an_engines_requests_reach_the_page_of_its_machine(
    address: str, machine: Machine, token: str, acme, vera, as_user, engine_port: int
) -> None:
    installed = machine.install(address, "--token", token)
    assert installed.returncode == 0, installed.stderr
    wait_until(lambda: ServingSample.objects.filter(interval_seconds__isnull=False).exists(), seconds=80)

    instance = Instance.objects.get(team=acme)
    latest = ServingLatest.objects.get(instance=instance, port=engine_port)
    assert (latest.engine, latest.model) == ("vllm", "meta-llama/Llama-3.1-8B-Instruct")
    assert latest.last_request_at is not None
    grown = ServingSample.objects.exclude(requests_finished=0).get(endpoint=latest, interval_seconds__isnull=False)
    assert (grown.requests_finished, grown.requests_failed, grown.prompt_tokens) == (20, 2, 6_000)
    assert grown.interval_seconds == pytest.approx(10, abs=5)
    assert grown.ttft_seconds_p95 == pytest.approx(0.75)
    assert sum(row.requests_finished or 0 for row in ServingRollupHour.objects.filter(endpoint=latest)) == 20
    assert Agent.objects.get().dropped_values == {}, "the agent sends nothing that ingest must drop"
    assert "Llama-3.1-8B-Instruct" in as_user(vera).get(f"/t/acme/instances/{instance.pk}/").text


def test_a_machine_that_was_installed_without_serving_reads_none(
    address: str, machine: Machine, token: str, engine_port: int
) -> None:
    done = machine.install(address, "--token", token, "--no-serving", "--no-start")
    assert done.returncode == 0, done.stderr
    assert '"serving": []' in next((machine.prefix).rglob("agent.json")).read_text()
