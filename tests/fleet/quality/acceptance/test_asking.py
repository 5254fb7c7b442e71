"""Which machines are tested by themselves, and who may have one tested."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.models import Hold
from fleet.providers.base import InstanceState, Tenancy
from fleet.quality.acceptance.asking import ask_fresh
from fleet.quality.acceptance.tasks import accept_machines
from fleet.quality.models import AcceptanceReport
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent, GpuLatest
from tests.fleet.quality.acceptance.conftest import NOW
from tests.fleet.quality.acceptance.machines import measured

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def test_a_fresh_machine_is_asked_once(rented) -> None:
    assert ask_fresh(now=NOW) == 1
    action = AgentAction.objects.get()
    assert (action.instance, action.name, action.options["when_busy"]) == (rented, "accept", False)
    assert action.asked_by is None
    assert ask_fresh(now=NOW) == 0
    AgentAction.objects.update(state="done", ended_at=NOW, result=measured())
    assert ask_fresh(now=NOW + MINUTE) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"tenancy": Tenancy.COMMUNITY_HOST},
        {"tenancy": Tenancy.UNKNOWN},
        {"managed": False},
        {"gone_at": NOW},
        {"state": InstanceState.STOPPED},
    ],
)
def test_shared_foreign_gone_and_stopped_ones_are_left_alone(make_rented, changes) -> None:
    make_rented(**changes)
    assert ask_fresh(now=NOW) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": []},
        {"actions": ["pre_stop"]},
        {"heartbeat_at": NOW - 5 * MINUTE},
        {"enrolled_at": NOW - timedelta(days=3)},
        {"revoked_at": NOW},
    ],
)
def test_an_agent_that_offers_nothing_now_or_is_not_new_is_not_asked(rented, changes) -> None:
    Agent.objects.update(**changes)
    assert ask_fresh(now=NOW) == 0


@pytest.mark.parametrize("reading", [{"busy_at": NOW}, {"process_count": 1}])
def test_a_machine_that_works_is_not_disturbed(rented, reading) -> None:
    gpu = rented.gpus.create(uuid="GPU-x")
    GpuLatest.objects.create(gpu=gpu, sampled_at=NOW, received_at=NOW, **reading)
    assert ask_fresh(now=NOW) == 0


def test_what_it_did_before_it_was_let_in_does_not_count(rented) -> None:
    gpu = rented.gpus.create(uuid="GPU-x")
    GpuLatest.objects.create(gpu=gpu, sampled_at=NOW, received_at=NOW, busy_at=NOW - 60 * MINUTE, process_count=0)
    assert ask_fresh(now=NOW) == 1


def test_a_machine_that_is_held_or_was_tested_is_not_asked(rented, make_rented) -> None:
    Hold.objects.create(instance=rented, kind="job")
    AcceptanceReport.objects.create(instance=make_rented("dev-02"), verdict="pass")
    assert ask_fresh(now=NOW) == 0


def test_a_try_that_failed_is_made_again_later_but_not_for_ever(rented) -> None:
    asked = []
    for number in range(6):
        at = NOW + number * 31 * MINUTE
        Agent.objects.update(heartbeat_at=at)
        asked.append(ask_fresh(now=at))
        assert ask_fresh(now=at + MINUTE) == 0
        AgentAction.objects.filter(ended_at=None).update(state="failed", ended_at=at)
        assert ask_fresh(now=at + MINUTE) == 0
    assert asked == [1, 1, 1, 0, 0, 0]


def test_an_installation_can_switch_it_off(rented, settings, time_machine) -> None:
    time_machine.move_to(NOW, tick=False)
    settings.ACCEPT_FRESH_MACHINES = False
    assert accept_machines() == 0
    settings.ACCEPT_FRESH_MACHINES = True
    assert accept_machines() == 1


def test_it_asks_few_questions_however_many_there_are(make_rented, django_assert_max_num_queries) -> None:
    for number in range(6):
        make_rented(f"work-{number}")
    Agent.objects.update(actions=[])
    with django_assert_max_num_queries(1):
        ask_fresh(now=NOW)
