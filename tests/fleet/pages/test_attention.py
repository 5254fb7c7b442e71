"""Needs attention: the open alerts of the team, as the inbox has them, and nothing of its own."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import AlertProgress
from fleet.alerts.people import acknowledge_alert, snooze_alert
from fleet.pages.attention import SHOWN
from fleet.teams.audit import Actor

from .conftest import HELD, STALLED


@pytest.fixture
def trouble(acme, make_machine):
    """trouble("train-01", "work.stalled", price="21") opens an alert of a machine of that name."""

    def raise_one(name, cause="gpu.lost", *, severity="urgent", price="8", **fields):
        machine = make_machine(name=name, readings=[STALLED], price=price)
        return raise_event(
            team=acme, cause=cause, subject=f"instance:{machine.pk}", severity=severity, instance=machine,
            signal=cause.replace(".", "_"), now=timezone.now(), price_per_hour=Decimal(price), **fields
        )  # fmt: skip

    return raise_one


@pytest.fixture
def panel(alice, as_user):
    def read() -> str:
        text: str = as_user(alice).get("/t/acme/").text
        return text[text.index('id="attention"') : text.index("</aside>", text.index('id="attention"'))]

    return read


def test_worst_first_with_the_money_at_stake(trouble, panel):
    trouble("warm-01", "gpu.throttled", severity="warning", price="90")
    trouble("broken-01", price="4")
    trouble("stuck-01", "work.stalled", price="21.52")
    text = panel()
    assert text.index("stuck-01 makes no progress") < text.index("broken-01 lost a GPU") < text.index("warm-01")
    assert '<span class="cost">$21.52/h</span>' in text


def test_a_state_is_drawn_as_its_mark_and_all_else_as_its_severity(trouble, panel):
    trouble("stuck-01", "work.stalled")
    trouble("broken-01")
    text = panel()
    assert text.count('class="gpu" data-s="stalled"') == 1
    assert text.count('class="sev" data-v="urgent"') == 1


def test_it_leads_to_the_alert(trouble, panel):
    assert f'href="/t/acme/alerts/{trouble("broken-01").pk}/"' in panel()


def test_what_is_snoozed_or_over_is_counted_and_what_somebody_works_on_says_so(trouble, acme, alice, panel):
    now, actor = timezone.now(), Actor(alice, "alice", "page", "192.0.2.7")
    snooze_alert(actor=actor, alert=trouble("asleep-01"), now=now, until=None)
    over = trouble("over-01")
    clear_event(team=acme, cause=over.cause, subject=over.subject, now=now)
    acknowledge_alert(actor=actor, alert=trouble("busy-01"), now=now)
    text = panel()
    assert "asleep-01" not in text
    assert "over-01" not in text
    assert "acknowledged" in text
    assert "1 snoozed" in text
    assert "1 closed in the last day" in text


def test_a_long_list_is_cut_and_counted(trouble, panel):
    for number in range(SHOWN + 3):
        trouble(f"m-{number}")
    text = panel()
    assert text.count("<li>") == SHOWN
    assert "3 more open" in text


def test_before_the_rules_have_looked_it_is_unknown_and_not_well(acme, make_machine, panel):
    make_machine(readings=[HELD])
    assert "have not looked" in panel()
    AlertProgress.objects.create(team=acme, evaluated_at=timezone.now(), watching_since=timezone.now())
    assert "Nothing needs you" in panel()


def test_names_from_machines_are_escaped(trouble, panel):
    trouble("<img src=x>")
    assert "<img src=x" not in panel()


def test_another_team_sees_nothing_of_it(trouble, charlie, as_user):
    trouble("secret-01")
    assert "secret-01" not in as_user(charlie).get("/t/rival/").text
