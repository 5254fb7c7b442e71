"""An engine that runs on a machine: found by the real agent, read over loopback, and on the machine's page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.inventory.models import Instance
from fleet.telemetry.models import Agent
from fleet.telemetry.serving.models import ServingLatest, ServingRollupHour, ServingSample
from tests.agent.engine_pages import vllm
from tests.contracts.test_agent_ingest import Machine, address, machine, token, wait_until
from tests.fakes.serving_engine import running_engine

__all__ = ["address", "machine", "token"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def engine_port(tmp_path: Path) -> Iterator[int]:
    pages = [vllm(stopped=100), vllm(stopped=118, aborted=2, prompt=56_000, ttft=(70, 108, 120))]
    with running_engine(tmp_path, pages) as port:
        yield port


def test_an_engines_requests_reach_the_page_of_its_machine(
    address: str, machine: Machine, token: str, acme, vera, as_user, engine_port: int
) -> None:
    installed = machine.install(address, "--token", token)
    assert installed.returncode == 0, installed.stderr
    wait_until(lambda: ServingSample.objects.filter(requests_finished__gt=0).exists(), seconds=80)

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
