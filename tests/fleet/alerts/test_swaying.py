"""What sways, ends elsewhere or was kept quiet: nobody is called twice for it, and nothing of it is lost."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.lines import RELATED, load_lines
from fleet.alerts.models import Alert, Signal
from fleet.alerts.people import acknowledge_alert, snooze_alert
from fleet.alerts.windows import add_window
from fleet.telemetry.models import Agent, MachineEvent
from tests.fleet.alerts.conftest import NOON, minutes, told


def trouble(team, machine, severity="urgent", at=NOON, **fields) -> Alert:
    about = {"cause": "gpu.lost", "subject": f"instance:{machine.pk}", "instance": machine}
    return raise_event(team=team, severity=severity, now=at, **about, **fields)


def test_a_disk_that_sways_around_its_limit_is_told_once(fleet, cloud):
    fleet.add(cloud, "node-1")
    fleet.evaluate()
    for number in range(30):
        fleet.host = {"filesystem_used_bytes": 981 - 2 * (number % 2), "filesystem_total_bytes": 1_000}
        fleet.pass_time(10)
    assert [line for line in fleet.told() if "disk" in line] == ["disk.full opened"]
    fleet.host = {"filesystem_used_bytes": 950, "filesystem_total_bytes": 1_000}
    fleet.pass_time(330)
    assert fleet.told()[-1] == "disk.full improved"


def test_worse_takes_back_an_acknowledgement_also_of_what_is_snoozed(acme, machine, alice, by):
    alert = trouble(acme, machine, "warning")
    acknowledge_alert(actor=by(alice), alert=alert, now=minutes(1), note="mine")
    snooze_alert(actor=by(alice), alert=alert, now=minutes(2), until=None)
    trouble(acme, machine, "urgent", minutes(3))
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_note, alert.is_snoozed) == (None, "", False)
    assert told(alert) == ["opened", "acknowledged", "snoozed", "woke"]


def test_what_got_worse_in_a_window_is_told_when_it_ends(fleet, cloud, acme, alice, by):
    machine = fleet.add(cloud, "node-1")
    fleet.evaluate()
    alert = trouble(acme, machine, "note", fleet.now)
    add_window(actor=by(alice), team=acme, now=fleet.now, starts_at=fleet.now, ends_at=minutes(10), instance=machine)
    trouble(acme, machine, "warning", fleet.now)
    assert told(alert) == ["opened"]
    fleet.pass_time(11 * 60, step=50)
    assert told(alert) == ["opened", "woke"]


def test_what_comes_back_within_its_snooze_and_is_no_worse_stays_quiet(acme, machine, alice, by):
    alert = trouble(acme, machine)
    snooze_alert(actor=by(alice), alert=alert, now=minutes(1), until=minutes(240))
    clear_event(team=acme, cause="gpu.lost", subject=alert.subject, now=minutes(10))
    trouble(acme, machine, at=minutes(20))
    alert.refresh_from_db()
    assert (told(alert), alert.is_snoozed, alert.snoozed_until) == (["opened", "snoozed"], True, minutes(240))


def test_money_of_two_currencies_is_not_added(acme, machine):
    for number, (price, currency) in enumerate((("10", "USD"), ("70", "CNY"))):
        alert = trouble(acme, machine, detail=str(number), scope=str(number), price_per_hour=Decimal(price), currency=currency)  # fmt: skip
    assert alert.price_per_hour is None
    amounts = {currency: Decimal(amount) for currency, amount in alert.evidence["at_stake"].items()}
    assert amounts == {"CNY": 70, "USD": 10}


def test_what_it_cost_counts_from_where_it_began(acme, machine):
    trouble(acme, machine, detail="a")
    alert = trouble(acme, machine, detail="b", since=minutes(-60), at=minutes(60))
    assert alert.money_so_far(minutes(60)) == Decimal(48)


@pytest.mark.parametrize("said", [timedelta(days=20_000), timedelta(days=-20_000)], ids=["long ago", "still to come"])
def test_an_agent_is_not_believed_about_when_it_began(fleet, cloud, said):
    fleet.add(cloud, "node-1")
    fleet.evaluate()
    Agent.objects.update(nvml_since=fleet.now - said)
    fleet.agent = {"nvml_state": "hung"}
    fleet.pass_time(120)
    (alert,) = Alert.objects.filter(cause="gpu.driver")
    assert fleet.machines[0].first_seen_at <= alert.since <= fleet.now


def test_codes_that_a_machine_makes_up_are_one_signal(fleet, cloud):
    machine = fleet.add(cloud, "node-1")
    fleet.evaluate()
    card = machine.gpus.first()
    made_up = range(10_000, 10_300)
    MachineEvent.objects.bulk_create(
        MachineEvent(instance=machine, gpu=card, at=fleet.now, kind="xid", code=code) for code in (79, *made_up)
    )
    fleet.pass_time(20)
    assert sorted(Signal.objects.filter(kind="xid").values_list("detail", flat=True)) == [
        f"xid:79:gpu:{card.pk}",
        f"xid:?:gpu:{card.pk}",
    ]


def test_an_alert_of_many_signals_shows_a_few_and_their_number(acme, machine):
    for number in range(40):
        alert = trouble(acme, machine, detail=str(number))
    (line,) = load_lines([Alert.objects.select_related(*RELATED).get(pk=alert.pk)], now=timezone.now())
    assert (len(line.signals), line.signal_count, line.hidden_signals) == (12, 40, 28)


def test_moments_beyond_what_calendars_show_are_refused(acme, machine, alice, by):
    far = NOON.replace(year=9999, month=12, day=31)
    with pytest.raises(ValidationError) as refused:
        snooze_alert(actor=by(alice), alert=trouble(acme, machine), now=NOON, until=far)
    assert list(refused.value.message_dict) == ["until"]
    for starts_at, ends_at, field in ((NOON, far, "ends_at"), (NOON.replace(year=1), minutes(9), "starts_at")):
        with pytest.raises(ValidationError) as refused:
            add_window(actor=by(alice), team=acme, now=NOON, starts_at=starts_at, ends_at=ends_at)
        assert list(refused.value.message_dict) == [field]
