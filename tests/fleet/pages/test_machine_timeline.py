"""A machine's timeline: states, alerts, stops, plans, holds, operations and money in one list, narrowed by kind."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.utils import timezone

from fleet.alerts.door import raise_event
from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.idle.shutdown.models import IdleStop, IdleStopEvent
from fleet.inventory.models import Hold, HoldKind
from fleet.inventory.operations.models import Operation, OperationEvent, OperationKind
from fleet.inventory.plans.models import PlannedAction
from fleet.pages.history import History
from fleet.pages.stretches import cost_within, intervals_of, stretches
from fleet.states import GpuState

from .conftest import HELD

NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)
HOUR = timedelta(hours=1)
WORKING, HELD_IDLE, FREE, UNKNOWN = GpuState.WORKING, GpuState.HELD_IDLE, GpuState.FREE, GpuState.UNKNOWN


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def charged():
    """charged(machine, "8.00", 0, 5) is in the ledger at that price from five hours ago until now; None: it goes on."""

    def write(machine, price, until, since, *, kind="compute", unit="hour", quantity=1):
        meter, _made = LedgerMeter.objects.get_or_create(
            team=machine.team, account=machine.account, instance=machine, kind=kind
        )
        return LedgerInterval.objects.create(
            meter=meter,
            period=(NOW - since * HOUR, None if until is None else NOW - until * HOUR),
            unit=unit,
            unit_price=None if price is None else Decimal(price),
            quantity=quantity,
            currency="USD",
            price_source="listing",
            seen_at=NOW,
            start_source="provider",
        )

    return write


def hours_of(*columns):
    starts = [NOW - (len(columns) - place) * HOUR for place in range(len(columns))]
    return stretches(starts, HOUR, columns)


def test_buckets_of_one_state_are_one_stretch_named_by_most_gpus_else_by_the_worst():
    found = hours_of((WORKING, WORKING), (WORKING, WORKING), (WORKING, FREE), (FREE, FREE))
    assert [(one.state, one.end - one.start) for one in found] == [(WORKING, 2 * HOUR), (FREE, 2 * HOUR)]
    assert [one.share for one in found] == [1.0, 0.75]
    assert hours_of((WORKING, WORKING, HELD_IDLE))[0].state is WORKING


def test_a_blink_joins_what_it_interrupts():
    found = hours_of((WORKING,), (WORKING,), (UNKNOWN,), (WORKING,), (WORKING,))
    assert [(one.state, one.end - one.start) for one in found] == [(WORKING, 5 * HOUR)]


def test_what_is_newest_is_told_however_short():
    found = hours_of((WORKING,), (WORKING,), (WORKING,), (HELD_IDLE,))
    assert [one.state for one in found] == [WORKING, HELD_IDLE]


def test_time_in_which_it_was_not_known_is_no_state():
    found = hours_of((None,), (None,), (WORKING,), (WORKING,))
    assert [(one.state, one.start) for one in found] == [(WORKING, NOW - 2 * HOUR)]


def test_a_stretch_costs_what_the_ledger_charges_for_it(make_instance, charged):
    machine = make_instance()
    charged(machine, "4.00", 2, 10)
    charged(machine, "8.00", None, 2)
    charged(machine, "72.00", None, 10, kind="disk_running", unit="month")
    rows = intervals_of(machine, since=NOW - 3 * HOUR, until=NOW)
    amounts, is_all = cost_within(rows, NOW - 3 * HOUR, NOW)
    # November has 720 hours.
    assert (amounts, is_all) == ({"USD": Decimal("4.00") + 2 * Decimal("8.00") + 3 * Decimal("0.10")}, True)


def test_a_price_that_nobody_told_is_not_nothing(make_instance, charged):
    machine = make_instance()
    charged(machine, None, 1, 3)
    charged(machine, "8.00", None, 1)
    rows = intervals_of(machine, since=NOW - 3 * HOUR, until=NOW)
    assert cost_within(rows, NOW - 3 * HOUR, NOW) == ({"USD": Decimal("8.00")}, False)
    assert cost_within([], NOW - 3 * HOUR, NOW) == ({}, True)


def text_of(response):
    assert response.status_code == 200
    body = response.content.decode().partition("<main")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.fixture
def eventful(acme, account, bob, make_machine, charged, monkeypatch):
    """A machine to which one of everything happened within its last hours."""
    machine = make_machine(readings=[HELD], price="8.00")
    charged(machine, "8.00", None, 4)
    starts = [NOW - (4 - place) * HOUR for place in range(4)]
    history = History(starts, 3600.0, {(machine.pk, 0): [WORKING, WORKING, HELD_IDLE, HELD_IDLE]})
    monkeypatch.setattr("fleet.pages.stretches.kept_history", lambda **_asked: history)
    raise_event(
        team=acme,
        cause="gpu.lost",
        subject=f"instance:{machine.pk}",
        severity="urgent",
        instance=machine,
        now=NOW - HOUR,
    )
    Hold.objects.create(instance=machine, kind=HoldKind.PERSON, owner=bob, reason="<eval>", started_at=NOW - HOUR)
    stop = IdleStop.objects.create(
        team=acme, instance=machine, policy_name="Nights", verb="stop", stage="grace", since=timezone.now()
    )
    IdleStopEvent.objects.create(stop=stop, at=NOW - HOUR / 2, kind="grace")
    PlannedAction.objects.create(
        team=acme,
        instance=machine,
        verb="stop",
        due_at=NOW + HOUR,
        source="schedule:1",
        reason="the nights",
        created_at=NOW - 3 * HOUR,
        state="cancelled",
        ended_at=NOW - 2 * HOUR,
        ended_by=bob,
        ended_reason="a demo",
    )
    operation = Operation.objects.create(
        team=acme, account=account, instance=machine, kind=OperationKind.REBOOT, token="rr-1", idempotency_key="k"
    )
    OperationEvent.objects.create(operation=operation, at=NOW - HOUR, kind="requested")
    return machine


ALL = {
    "states": "Held idle for 2 h so far, $16.00",
    "alerts": "lost",
    "stops": "Idle stop: warned Nights",
    "planned": "Planned stop: cancelled a demo, bob",
    "holds": "Hold placed bob, <eval>",
    "operations": "Restart: asked for",
}


def test_everything_stands_in_one_list_newest_first(alice, as_user, eventful):
    said = text_of(as_user(alice).get(f"/t/acme/instances/{eventful.pk}/timeline/"))
    for words in ALL.values():
        assert words in said, words
    assert "Working for 2 h, $16.00" in said
    order = [
        said.index(words) for words in (ALL["stops"], ALL["states"], "Planned: stop the nights", "Working for 2 h")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("kind", ALL)
def test_a_filter_leaves_the_others_out(kind, alice, as_user, eventful):
    said = text_of(as_user(alice).get(f"/t/acme/instances/{eventful.pk}/timeline/?days=1&kind={kind}"))
    for other, words in ALL.items():
        assert (words in said) is (other == kind), (other, said)


def test_filters_are_links_that_add_and_take_away(alice, as_user, eventful):
    body = (
        as_user(alice)
        .get(f"/t/acme/instances/{eventful.pk}/timeline/?days=1&kind=holds&kind=nonsense")
        .content.decode()
    )
    assert 'href="?days=1&amp;kind=stops&amp;kind=holds"' in body
    assert 'href="?days=1" aria-current="true">Holds<' in body
    assert 'href="?days=1">All<' in body
    assert 'href="?days=30&amp;kind=holds"' in body


def test_money_stands_there_day_by_day(alice, as_user, eventful, monkeypatch):
    from fleet.costs.spend.spend import By, Spend, Sum

    day = Sum({"USD": Decimal(190)}, Decimal(190), {GpuState.FREE: Decimal(40)}, {})
    answer = Spend("USD", (By.DAY,), {((NOW - timedelta(days=1)).date(),): day}, day)
    monkeypatch.setattr("fleet.pages.timeline_money.spend", lambda **_asked: answer)
    said = text_of(as_user(alice).get(f"/t/acme/instances/{eventful.pk}/timeline/?kind=money"))
    assert "11-17 00:00 16 November cost $190.00 $40.00 of it bought nothing" in said


def test_the_panel_beside_the_machine_leads_there(alice, as_user, eventful):
    body = as_user(alice).get(f"/t/acme/instances/{eventful.pk}/").content.decode()
    assert f'href="/t/acme/instances/{eventful.pk}/timeline/"' in body
    assert "Idle stop: warned" in body


def test_another_team_finds_no_such_page(charlie, as_user, eventful):
    assert as_user(charlie).get(f"/t/rival/instances/{eventful.pk}/timeline/").status_code == 404
