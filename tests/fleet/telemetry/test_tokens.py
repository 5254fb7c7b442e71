"""The cache of tokens, and how soon it learns of what was changed elsewhere."""

from __future__ import annotations

import time

import pytest
from asgiref.sync import sync_to_async

from fleet.inventory.accounts import delete_account
from fleet.inventory.machines import retire_machine
from fleet.inventory.models import Instance
from fleet.teams.secrets import new_token
from fleet.telemetry.enrolment import create_enrolment_token, enrol_machine
from fleet.telemetry.ingest import agents as cache_module
from fleet.telemetry.ingest.agents import SWEEP_SECONDS, TRUST_SECONDS
from fleet.telemetry.matching import Claim
from fleet.telemetry.models import Agent
from tests.fleet.telemetry.conftest import batch
from tests.fleet.telemetry.enrolling import ACTOR

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def service(ingest):
    """Without the sweep of its own: a test says when."""
    found = await ingest.start()
    for task in found._tasks:
        if task.get_coro().__qualname__ == "AgentCache.run":
            task.cancel()
    return found


def test_a_revoked_token_is_refused_within_five_seconds():
    """A sweep sees it at the latest SWEEP_SECONDS later; without one nothing is trusted longer than TRUST_SECONDS."""
    assert SWEEP_SECONDS < TRUST_SECONDS <= 5.0


async def test_a_token_revoked_by_another_process_is_refused_after_a_sweep(service, reporter):
    assert (await reporter.samples()).status_code == 200
    await Agent.objects.aupdate(revoked_at="2026-01-01T00:00:00Z")
    await service.agents.sweep()
    assert (await reporter.samples()).status_code == 401


async def test_without_a_sweep_trust_runs_out(service, reporter, monkeypatch):
    assert (await reporter.samples()).status_code == 200
    await Agent.objects.aupdate(revoked_at="2026-01-01T00:00:00Z")
    # Later, but not standing still: the loop's own timers are kept by the same clock.
    clock = time.monotonic
    with monkeypatch.context() as later:
        later.setattr(time, "monotonic", lambda: clock() + TRUST_SECONDS + 0.1)
        assert (await reporter.samples()).status_code == 401


async def test_the_sweep_runs_by_itself(ingest, reporter, monkeypatch):
    monkeypatch.setattr(cache_module, "SWEEP_SECONDS", 0.02)
    service = await ingest.start()
    service._run(service.agents.run())
    assert (await reporter.samples()).status_code == 200
    await Agent.objects.aupdate(revoked_at="2026-01-01T00:00:00Z")
    for _ in range(500):
        if (await reporter.samples()).status_code == 401:
            return
    pytest.fail("the revoked token was accepted 500 times")


async def test_a_deleted_machine_is_forgotten(service, machine, reporter):
    assert (await reporter.samples()).status_code == 200
    await Agent.objects.all().adelete()
    await service.agents.sweep()
    assert (await reporter.samples()).status_code == 401


async def test_a_changed_interval_is_told_with_the_next_answer(service, reporter):
    assert (await reporter.samples()).json()["config"]["interval_seconds"] == 5
    await Agent.objects.aupdate(interval_seconds=30, report_seconds=30, paused=True)
    await service.agents.sweep()
    config = (await reporter.samples()).json()["config"]
    assert (config["interval_seconds"], config["report_seconds"], config["paused"]) == (30, 30, True)
    assert config["server_time"] == pytest.approx(time.time(), abs=60)


async def test_a_known_token_costs_no_query(service, reporter, monkeypatch):
    assert (await reporter.samples()).status_code == 200

    async def no_query(*_):
        raise AssertionError

    monkeypatch.setattr(service.agents, "_load", no_query)
    assert (await reporter.samples()).status_code == 200


async def test_guessing_costs_one_query_for_each_guess_at_most(service, http, monkeypatch):
    token = new_token("rra").secret
    headers = {"Authorization": f"Bearer {token}"}
    assert (await http.post("/ingest/v1/samples", json=batch(), headers=headers)).status_code == 401
    monkeypatch.setattr(service.agents, "_load", None)
    assert (await http.post("/ingest/v1/samples", json=batch(), headers=headers)).status_code == 401


async def test_enrolling_again_ends_the_old_token(service, acme, machine, reporter, http):
    assert (await reporter.samples()).status_code == 200
    await Agent.objects.aupdate(machine_id="m1")

    def again():
        from fleet.teams.audit import Actor

        _, secret = create_enrolment_token(actor=Actor.system("test"), team=acme)
        from django.utils import timezone

        return enrol_machine(
            secret=secret.secret, claim=Claim(machine_id="m1", hostname="h", boot_id="b1"), now=timezone.now()
        )

    enrolled = await sync_to_async(again)()
    await service.agents.sweep()
    assert (await reporter.samples()).status_code == 401
    reporter.token = enrolled.token.secret
    assert (await reporter.samples()).status_code == 200


async def test_a_machine_that_is_given_back_reports_no_more(service, machine, reporter):
    assert (await reporter.samples()).status_code == 200
    await sync_to_async(retire_machine)(actor=ACTOR, instance=machine)
    await service.agents.sweep()
    for path in ("samples", "heartbeat"):
        assert (await reporter.post(path, {"v": 1, "sent_at": time.time()})).status_code == 401


async def test_a_machine_of_a_disconnected_account_reports_no_more(service, machine, reporter):
    assert (await reporter.samples()).status_code == 200
    await sync_to_async(delete_account)(actor=ACTOR, account=machine.account)
    await service.agents.sweep()
    assert (await reporter.samples()).status_code == 401


async def test_a_machine_that_is_listed_again_reports_again(service, machine, reporter, monkeypatch):
    await Instance.objects.aupdate(gone_at="2026-01-01T00:00:00Z")
    assert (await reporter.samples()).status_code == 401
    await Instance.objects.aupdate(gone_at=None)
    monkeypatch.setattr(cache_module, "SWEEP_SECONDS", 0.0)
    assert (await reporter.samples()).status_code == 200
