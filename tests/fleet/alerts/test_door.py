"""raise_event and clear_event: one alert a cause and subject, whoever calls how often."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert, AlertEvent, Signal
from tests.fleet.alerts.conftest import NOON, minutes, recorded


def lose(team, machine, *, gpu=3, at=NOON, severity="urgent", **more) -> Alert:
    return raise_event(
        team=team, cause="gpu.lost", subject=f"instance:{machine.pk}", severity=severity, instance=machine,
        signal="gpu_lost", detail=f"GPU {gpu}", scope=f"gpu:{gpu}", price_per_hour=Decimal(3), now=at, **more,
    )  # fmt: skip


def test_one_alert_and_one_event_however_often_it_is_raised(acme, machine, heard):
    first, again = lose(acme, machine), lose(acme, machine, at=minutes(1))
    assert first.pk == again.pk
    assert [event.kind for event in heard] == ["opened"]
    assert Signal.objects.count() == 1


def test_more_signals_fold_under_the_same_alert_and_add_to_the_money_at_stake(acme, machine, heard):
    lose(acme, machine)
    alert = lose(acme, machine, gpu=5, at=minutes(1))
    assert Alert.objects.count() == 1
    assert alert.price_per_hour == 6
    assert [event.kind for event in heard] == ["opened", "signal"]


def test_a_machine_without_a_price_of_its_own_part_is_at_stake_as_a_whole(acme, machine):
    alert = raise_event(
        team=acme, cause="machine.unreachable", subject="instance:1", severity="urgent", instance=machine, now=NOON
    )
    assert alert.price_per_hour == 24
    assert alert.account_id == machine.account_id
    assert alert.money_so_far(minutes(30)) == 12


def test_an_unknown_price_is_not_nothing(acme, machine):
    alert = raise_event(team=acme, cause="x.y", subject="z", severity="note", now=NOON)
    assert alert.price_per_hour is None
    assert alert.money_so_far(minutes(30)) is None


def test_it_resolves_with_its_last_signal(acme, machine):
    subject = f"instance:{machine.pk}"
    alert = lose(acme, machine)
    raise_event(
        team=acme, cause="gpu.lost", subject=subject, severity="urgent", instance=machine, signal="count", now=NOON
    )
    clear_event(team=acme, cause="gpu.lost", subject=subject, signal="gpu_lost", now=minutes(2))
    alert.refresh_from_db()
    assert alert.is_open
    clear_event(team=acme, cause="gpu.lost", subject=subject, signal="count", now=minutes(3))
    alert.refresh_from_db()
    assert (alert.closed_at, alert.closed_why) == (minutes(3), "evidence")
    assert recorded(alert) == ["opened", "signal:joined", "resolved"]


def test_clearing_what_is_not_there_does_nothing(acme):
    assert clear_event(team=acme, cause="gpu.lost", subject="instance:1", now=NOON) is None


def test_a_worse_signal_makes_it_worse_and_its_end_makes_it_better(acme, machine):
    lose(acme, machine, severity="warning")
    alert = lose(acme, machine, gpu=4, severity="urgent", at=minutes(1))
    assert alert.severity == "urgent"
    lose(acme, machine, gpu=4, severity="warning", at=minutes(2))
    alert.refresh_from_db()
    assert alert.severity == "warning"
    assert recorded(alert) == ["opened", "worsened", "improved"]


def test_a_price_that_changes_counts_from_then_on(acme, machine):
    lose(acme, machine)
    alert = lose(acme, machine, gpu=5, at=minutes(60))
    assert alert.money_so_far(minutes(120)) == 3 + 6


def test_a_severity_that_nobody_knows_is_refused(acme, machine):
    with pytest.raises(ValueError, match="urgent, warning, note"):
        lose(acme, machine, severity="bad")
    assert not Alert.objects.exists()


def test_the_event_is_kept_or_lost_with_what_it_tells_of(acme, machine, heard):
    with transaction.atomic():
        lose(acme, machine)
        transaction.set_rollback(True)
    assert not AlertEvent.objects.exists()


def test_the_database_itself_refuses_a_second_open_alert(acme):
    Alert.objects.create(team=acme, cause="a", subject="b", severity="note")
    with pytest.raises(IntegrityError), transaction.atomic():
        Alert.objects.create(team=acme, cause="a", subject="b", severity="note")


@pytest.mark.django_db(transaction=True)
def test_calls_at_the_same_moment_make_one_alert(acme, machine):
    def call(gpu: int) -> int:
        try:
            return lose(acme, machine, gpu=gpu % 4).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(call, range(16)))) == 1
    assert AlertEvent.objects.filter(kind="opened").count() == 1
    assert Signal.objects.count() == 4
