"""The channel on the wire: what a heartbeat brings, and which reports are taken."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from psycopg import AsyncConnection

from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.ingest.actions import REPORTS_A_MINUTE
from fleet.telemetry.models import Agent

pytestmark = pytest.mark.django_db(transaction=True)


def beat(**fields):
    return {"v": 1, "sent_at": time.time(), **fields}


async def asked(instance, **fields) -> AgentAction:
    values = {"name": "pre_stop", "expires_at": timezone.now() + timedelta(minutes=1), **fields}
    return await AgentAction.objects.acreate(instance=instance, **values)


async def test_a_heartbeat_names_what_is_offered_and_brings_what_is_asked(reporter, machine, make_instance) -> None:
    action = await asked(machine, options={"timeout_seconds": 30})
    answer = await reporter.post("heartbeat", beat(actions=["accept", "pre_stop"]))
    (one,) = answer.json()["actions"]
    assert {"id": action.pk, "name": "pre_stop", "options": {"timeout_seconds": 30}}.items() <= one.items()
    assert one["expires_at"] == pytest.approx(action.expires_at.timestamp())
    agent = await Agent.objects.aget(pk=reporter.agent.pk)
    assert agent.actions == ["accept", "pre_stop"]
    assert "actions" not in (await reporter.post("samples", {**beat(), "samples": []})).json()


async def test_an_agent_from_before_actions_offers_none(reporter) -> None:
    await reporter.post("heartbeat", beat(actions=["accept"]))
    answer = await reporter.post("heartbeat", beat())
    assert answer.json().keys() == {"config"}
    assert (await Agent.objects.aget(pk=reporter.agent.pk)).actions == []


@pytest.mark.parametrize("actions", [["rm -rf /"], ["a" * 50], ["x"] * 9, "accept"])
async def test_a_heartbeat_that_names_something_else_is_refused(reporter, actions) -> None:
    answer = await reporter.post("heartbeat", beat(actions=actions))
    assert answer.status_code == 422
    assert answer.json()["field"].startswith("actions")


async def test_only_what_is_open_in_time_and_of_this_machine_is_brought(
    reporter, machine, make_instance, reporter_for
) -> None:
    past = timezone.now() - timedelta(seconds=1)
    await asked(machine, expires_at=past)
    for state in ("running", "done", "failed", "lost"):
        await asked(machine, state=state)
    other = await reporter_for(await _made(make_instance))
    await asked(other.agent.instance)
    assert "actions" not in (await reporter.post("heartbeat", beat())).json()
    assert len((await other.post("heartbeat", beat())).json()["actions"]) == 1


async def _made(make_instance):
    return await sync_to_async(make_instance)(name="other")


async def test_a_report_ends_it_and_is_cleaned(reporter, machine) -> None:
    action = await asked(machine)
    told = {"output": "saved\n\x1b[31mred\u202e", "exit_code": 0, "deep": {"a": {"b": {"c": {"d": 1}}}}}
    for state, result in (("running", None), ("done", told)):
        answer = await reporter.post("actions", {"v": 1, "id": action.pk, "state": state, "result": result})
        assert answer.status_code == 200, answer.text
    await action.arefresh_from_db()
    assert action.state == "done"
    assert action.result == {"output": "saved\n[31mred", "exit_code": 0, "deep": {"a": {"b": {}}}}
    again = await reporter.post("actions", {"v": 1, "id": action.pk, "state": "failed", "detail": "no"})
    assert again.status_code == 200
    await action.arefresh_from_db()
    assert action.state == "done"


async def test_reports_of_others_and_of_no_form_are_refused(reporter, reporter_for, machine, make_instance) -> None:
    action = await asked(machine)
    stranger = await reporter_for(await _made(make_instance))
    assert (await stranger.post("actions", {"v": 1, "id": action.pk, "state": "done"})).status_code == 404
    for body, field in (
        ({"v": 1, "id": action.pk, "state": "asked"}, "state"),
        ({"v": 1, "id": "one", "state": "done"}, "id"),
        ({"v": 1, "id": action.pk, "state": "done", "result": [1]}, "result"),
        ({"v": 2, "id": action.pk, "state": "done"}, "v"),
    ):
        answer = await reporter.post("actions", body)
        assert (answer.status_code, answer.json()["field"]) == (422, field)
    stranger.token = "rra_made_up"
    assert (await stranger.post("actions", {"v": 1, "id": action.pk, "state": "done"})).status_code == 401
    await action.arefresh_from_db()
    assert action.state == "asked"


async def test_reports_are_limited_by_machine(reporter, reporter_for, make_instance) -> None:
    body = {"v": 1, "id": 1, "state": "running"}
    statuses = [(await reporter.post("actions", body)).status_code for _ in range(REPORTS_A_MINUTE + 1)]
    assert statuses == [404] * REPORTS_A_MINUTE + [429]
    other = await reporter_for(await _made(make_instance))
    assert (await other.post("actions", body)).status_code == 404


async def test_a_heartbeat_is_one_statement_whatever_is_asked(reporter, machine) -> None:
    statements: list[str] = []
    original = AsyncConnection.execute

    async def counted(self, query, *args, **kwargs):
        statements.append(str(query))
        return await original(self, query, *args, **kwargs)

    await reporter.post("heartbeat", beat())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AsyncConnection, "execute", counted)
        await reporter.post("heartbeat", beat())
        few = len([one for one in statements if "fleet_agent SET" in one or "agent_action" in one])
        for _ in range(3):
            await asked(machine)
        statements.clear()
        await reporter.post("heartbeat", beat())
    assert few == 1
    assert len([one for one in statements if "fleet_agent SET" in one or "agent_action" in one]) == 1


async def test_numbers_that_are_none_are_left_out(reporter, machine) -> None:
    action = await asked(machine)
    body = b'{"v": 1, "id": %d, "state": "done", "result": {"a": NaN, "b": 1e999, "c": 2.5, "d": %d, "e": [1, null]}}'
    answer = await reporter.post("actions", body % (action.pk, 10**400))
    assert answer.status_code == 200, answer.text
    await action.arefresh_from_db()
    assert action.result == {"c": 2.5, "e": [1]}
