"""What the observation log and the holds say on a timeline."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.inventory.machines import place_hold, release_hold
from fleet.inventory.poll import poll_account
from fleet.inventory.timeline import held, observed
from fleet.providers.base import Billing, InstanceState, Money
from fleet.teams.access import TeamRequest
from fleet.teams.audit import Actor
from tests.fleet.inventory.conftest import NOON

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def asking(team) -> TeamRequest:
    request = TeamRequest()
    request.team = team
    return request


@pytest.fixture
def poll(lab, provider):
    def run(*machines, after: int = 0):
        provider.machines = list(machines)
        lab.refresh_from_db()
        poll_account(account=lab, now=NOON + after * MINUTE)

    return run


def texts(team, source=observed, instance=None):
    entries = source(asking(team), instance, NOON - HOUR, NOON + HOUR)["entries"]
    return [(entry.text, entry.detail, entry.mark) for entry in sorted(entries, key=lambda entry: entry.at)]


def test_a_machines_life_reads_as_sentences(poll, listed, acme, lab):
    other = listed("i-2")
    poll(other, listed("i-1", rate="2.50"))
    poll(other, listed("i-1", rate="2.75"), after=1)
    stopped = {"state": InstanceState.STOPPED, "raw_state": "exited", "billing": Billing.STORAGE, "rate": "2.75"}
    poll(other, listed("i-1", **stopped), after=2)
    poll(other, after=3)
    poll(other, listed("i-1", **stopped), after=4)
    for after in (5, 6, 7):
        poll(other, after=after)
    machine = lab.instances.get(external_id="i-1")
    assert texts(acme, instance=machine) == [
        ("First seen: running", "$2.50 an hour", ""),
        ("Price changed", "$2.50 an hour, now $2.75 an hour", ""),
        ("Stopped", "the provider says “exited”", "stopped"),
        ("Missing from the provider's list", "", "unknown"),
        ("Listed again: stopped", "", "stopped"),
        ("Missing from the provider's list", "", "unknown"),
        ("Terminated", "no longer in the provider's list", "stopped"),
    ]


@pytest.mark.parametrize(
    ("billing", "says"),
    [(Billing.FULL, "$2.50 an hour"), (Billing.STORAGE, "$0.20 an hour for its disks"), (Billing.NONE, "")],
)
def test_a_first_sight_says_what_the_state_costs(poll, listed, acme, billing, says):
    poll(listed("i-1", rate="2.50", storage_rate=Money(Decimal("0.20"), "USD"), billing=billing))
    assert texts(acme)[0][1] == says


def test_the_teams_own_names_the_machine(poll, listed, acme, lab):
    poll(listed("i-1"))
    (entry,) = observed(asking(acme), None, NOON - HOUR, NOON + HOUR)["entries"]
    assert (entry.machine, entry.instance_id) == ("name of i-1", lab.instances.get().pk)


def test_another_teams_is_empty(poll, listed, rival):
    poll(listed("i-1"))
    assert texts(rival) == []


def test_holds_are_placed_and_released(make_instance, acme, bob):
    actor = Actor(bob, "bob", "page")
    hold = place_hold(actor=actor, instance=make_instance(), owner=bob, reason="evaluation", now=NOON)
    release_hold(actor=actor, hold=hold, now=NOON + MINUTE)
    assert texts(acme, held) == [("Hold placed", "bob, evaluation", ""), ("Hold released", "bob, evaluation", "")]
