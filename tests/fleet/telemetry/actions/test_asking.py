"""Asking an agent for an action: only what it offers, one of a kind at a time, and given up when nothing comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from fleet.telemetry.actions.ask import ActionError, ActionOpenError, ask_action, offers_action
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.actions.report import MOST_RUNNING, Told, UnknownActionError, expire_actions, take_report
from fleet.telemetry.actions.signals import action_ended
from fleet.telemetry.models import Agent

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def machine(make_instance):
    instance = make_instance(gpus=1)
    Agent.objects.create(instance=instance, token_hash="h", prefix="rra_x", heartbeat_at=NOW, actions=["pre_stop"])
    return instance


@pytest.fixture
def actor(alice) -> Actor:
    return Actor(alice, "alice", "page")


@pytest.fixture
def ask(machine, actor):
    def asked(name: str = "pre_stop", now: datetime = NOW, **options: object) -> AgentAction:
        return ask_action(
            actor=actor, instance=machine, name=name, options=options, now=now, lifetime=timedelta(minutes=1)
        )

    return asked


@pytest.fixture
def ended(django_capture_on_commit_callbacks):
    heard: list[AgentAction] = []

    def hear(*, action: AgentAction, **_: object) -> None:
        heard.append(action)

    action_ended.connect(hear)
    yield heard
    action_ended.disconnect(hear)


def test_what_is_asked_is_a_row_and_a_line_of_the_record(ask, alice) -> None:
    action = ask(timeout_seconds=60)
    assert (action.state, action.options, action.asked_by) == ("asked", {"timeout_seconds": 60}, alice)
    assert action.expires_at == NOW + timedelta(minutes=1)
    entry = AuditEntry.objects.get(action="agent.ask")
    assert entry.new == {"action": "pre_stop", "timeout_seconds": 60}


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": []},
        {"actions": ["accept"]},
        {"heartbeat_at": NOW - timedelta(minutes=2)},
        {"heartbeat_at": None},
        {"revoked_at": NOW},
    ],
)
def test_an_agent_that_is_silent_revoked_or_does_not_offer_it_is_not_asked(machine, ask, changes) -> None:
    Agent.objects.update(**changes)
    assert not offers_action(machine, "pre_stop", now=NOW)
    with pytest.raises(ActionError, match="silent"):
        ask()
    assert not AgentAction.objects.exists()


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("rm -rf /", {}, "no action"),
        ("pre_stop", {"command": "reboot"}, "command"),
        ("pre_stop", {"timeout_seconds": 1_000_000}, "timeout_seconds"),
        ("pre_stop", {"timeout_seconds": "60; reboot"}, "timeout_seconds"),
        ("pre_stop", {"timeout_seconds": True}, "timeout_seconds"),
        ("accept", {"when_busy": "yes"}, "when_busy"),
    ],
)
def test_nothing_but_known_numbers_and_words_is_ever_sent(ask, name, options, told) -> None:
    with pytest.raises(ActionError, match=told):
        ask(name, **options)


def test_a_second_one_of_a_kind_names_the_first(ask) -> None:
    first = ask()
    with pytest.raises(ActionOpenError) as error:
        ask()
    assert error.value.action == first


def test_a_report_is_taken_once(machine, ask, ended, django_capture_on_commit_callbacks) -> None:
    action = ask()
    done = Told(action_id=action.pk, state="done", result={"exit_code": 0})
    with django_capture_on_commit_callbacks(execute=True):
        assert take_report(instance_id=machine.pk, told=Told(action_id=action.pk, state="running"), now=NOW + SECOND)
        assert take_report(instance_id=machine.pk, told=done, now=NOW + 5 * SECOND)
        assert not take_report(instance_id=machine.pk, told=done, now=NOW + 9 * SECOND)
        late = Told(action_id=action.pk, state="failed", detail="no")
        assert not take_report(instance_id=machine.pk, told=late, now=NOW + 9 * SECOND)
    action.refresh_from_db()
    assert (action.state, action.result, action.detail) == ("done", {"exit_code": 0}, "")
    assert (action.started_at, action.ended_at) == (NOW + SECOND, NOW + 5 * SECOND)
    assert [one.pk for one in ended] == [action.pk]
    assert AuditEntry.objects.get(action="agent.acted").via == "agent"


def test_another_machine_can_not_report_it(ask, make_instance) -> None:
    action = ask()
    with pytest.raises(UnknownActionError):
        take_report(instance_id=make_instance(name="other").pk, told=Told(action_id=action.pk, state="done"), now=NOW)
    action.refresh_from_db()
    assert action.state == "asked"


def test_what_is_not_begun_in_time_is_lost_and_told(ask, ended, django_capture_on_commit_callbacks) -> None:
    action = ask()
    assert expire_actions(now=NOW + timedelta(seconds=59)) == 0
    with django_capture_on_commit_callbacks(execute=True):
        assert expire_actions(now=NOW + timedelta(seconds=61)) == 1
        assert expire_actions(now=NOW + timedelta(seconds=62)) == 0
    action.refresh_from_db()
    assert action.state == "lost"
    assert [one.state for one in ended] == ["lost"]


def test_what_runs_is_given_longer_than_its_lifetime(machine, ask) -> None:
    action = ask()
    take_report(instance_id=machine.pk, told=Told(action_id=action.pk, state="running"), now=NOW)
    assert expire_actions(now=NOW + timedelta(minutes=30)) == 0
    assert expire_actions(now=NOW + MOST_RUNNING) == 1
