"""What was asked of providers and is not proved, from the operation's row to the alert and its end."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.load import load_snapshot
from fleet.alerts.models import Alert
from fleet.alerts.words import title_of, why_of
from fleet.inventory.operations.models import Operation
from tests.fleet.alerts.conftest import NOON

MINUTE = timedelta(minutes=1)


@pytest.fixture
def asked(acme, account, make_instance):
    """asked("stop") is that act on a machine of its own, asked for at noon."""

    def make(kind: str, **fields: object) -> Operation:
        machine = make_instance(name=f"{kind}-01", price_per_hour="12") if kind != "launch" else None
        spec = {"create": {"name": "train-02"}} if kind == "launch" else {}
        return Operation.objects.create(
            team=acme, account=account, instance=machine, kind=kind, token=f"rr-{kind}", requested_at=NOON, spec=spec,
            **{"price_per_hour": "12", "state": "verifying", "seen_state": "running", "attempts": 2, **fields},
        )  # fmt: skip

    return make


@pytest.fixture
def evaluated(acme):
    """evaluated(5 * MINUTE) is what is open then."""

    def at(after: timedelta) -> list[Alert]:
        evaluate_team(team=acme, now=NOON + after)
        causes = ("operation.stop", "operation.unconfirmed", "operation.failed")
        return list(Alert.objects.filter(closed_at=None, cause__in=causes).order_by("pk"))

    return at


@pytest.mark.parametrize("kind", ["stop", "terminate"])
def test_a_stop_that_does_not_show_is_urgent_with_the_money_since_it_was_asked_for(asked, evaluated, kind):
    asked(kind)
    assert evaluated(4 * MINUTE) == []
    (alert,) = evaluated(6 * MINUTE)
    assert (alert.cause, alert.severity) == ("operation.stop", "urgent")
    assert alert.money_so_far(NOON + timedelta(hours=2)) == Decimal(24)
    assert title_of(alert) == f"{kind}-01 is not shown to have stopped"
    assert "sent 2 times; the provider shows: running" in why_of(alert)


def test_it_goes_on_until_the_proof_and_no_longer(asked, evaluated):
    operation = asked("stop")
    evaluated(6 * MINUTE)
    assert len(evaluated(timedelta(days=3))) == 1
    Operation.objects.filter(pk=operation.pk).update(state="proved", proved_at=timezone.now())
    assert evaluated(timedelta(days=3, minutes=1)) == []
    assert Alert.objects.get(cause="operation.stop").closed_why == "evidence"


def test_a_machine_shown_as_off_and_billed_in_full_keeps_it_open(asked, evaluated):
    operation = asked("stop", seen_state="stopped", seen_billing="full")
    operation.instance.state, operation.instance.billing = "stopped", "full"
    operation.instance.save()
    assert len(evaluated(6 * MINUTE)) == 1


def test_a_launch_that_never_comes_is_named_as_it_was_ordered(asked, evaluated):
    asked("launch", seen_state="")
    assert evaluated(29 * MINUTE) == []
    (alert,) = evaluated(31 * MINUTE)
    assert (alert.cause, alert.severity, alert.instance) == ("operation.unconfirmed", "warning", None)
    assert title_of(alert).startswith("train-02 ")


def test_a_refusal_is_told_until_the_next_act(asked, evaluated, acme, account):
    refused = asked("stop", state="failed", failed_at=NOON, error_kind="auth_failed")
    (alert,) = evaluated(MINUTE)
    assert (alert.cause, alert.severity) == ("operation.failed", "urgent")
    assert "the provider does not accept the key" in why_of(alert)
    Operation.objects.create(
        team=acme, account=account, instance=refused.instance, kind="stop", token="rr-2", requested_at=NOON + MINUTE
    )
    assert evaluated(2 * MINUTE) == []


@pytest.mark.parametrize("kind", ["superseded", "abandoned"])
def test_what_people_ended_is_no_trouble(asked, evaluated, kind):
    asked("stop", state="failed", failed_at=NOON, error_kind=kind)
    assert evaluated(MINUTE) == []


def test_any_number_of_operations_is_one_query(asked, acme, account, make_instance):
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            load_snapshot(team=acme, now=NOON, watching_since=NOON)
        return len(seen)

    asked("stop")
    few = queries()
    for number in range(10):
        machine = make_instance(name=f"m{number}")
        Operation.objects.create(
            team=acme, account=account, instance=machine, kind="stop", token=f"t{number}", requested_at=NOON
        )
    assert queries() == few
