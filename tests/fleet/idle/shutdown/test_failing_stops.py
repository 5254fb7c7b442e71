"""A provider that lies: said at once, every hour with what it burns, proved in the end or given up when the machine is in use again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from fleet.alerts.models import Alert
from fleet.idle.shutdown import ordering
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.machines import place_hold
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_stop

MANY = 1_000


def failed(room):
    room.driver.world.lies["ignored"] = MANY
    room.until("failed", minutes=60)
    return room.stop


def test_it_is_urgent_at_once_and_escalated_every_hour_with_what_it_burns(room):
    stop = failed(room)
    alert = Alert.objects.get(cause="idle.failed", closed_at=None)
    assert (alert.severity, alert.subject) == ("urgent", f"idle_stop:{stop.pk}")
    assert not Alert.objects.filter(cause="idle.stop", closed_at=None).exists()
    for _hour in range(2):
        room.driver.wait(3_590)
        room.go(1)
    alert.refresh_from_db()
    assert list(alert.events.order_by("pk").values_list("kind", flat=True)) == ["opened", "escalated", "escalated"]
    burnt = Decimal(alert.evidence["values"]["burnt"])
    assert Decimal("8.00") < burnt < Decimal("9.50"), "two hours and more at $4"
    assert not IdleSaving.objects.exists()
    assert room.stage != "stopped"


def test_it_ends_when_the_provider_shows_it(room):
    stop = failed(room)
    room.driver.world.lies.clear()
    room.until("stopped", minutes=90)
    assert room.stop.pk == stop.pk
    assert not Alert.objects.filter(closed_at=None).exists()
    assert IdleSaving.objects.get().stop == stop
    assert Operation.objects.filter(kind="stop").count() == 1, "one order, said again by whoever proves it"


def test_work_that_returns_ends_it_and_nobody_asks_for_the_stop_any_more(room):
    stop = failed(room)
    room.go(1, answer="active")
    stop.refresh_from_db()
    assert (stop.stage, stop.why) == ("cancelled", "active")
    assert (Operation.objects.get().state, Operation.objects.get().error_kind) == ("failed", "abandoned")
    room.driver.world.lies.clear()
    calls = len(room.calls)
    room.go(15, answer="active")
    assert len(room.calls) == calls
    assert Instance.objects.get().state == "running"


def test_a_refusal_is_a_failure(room):
    room.driver.world.until["refused"] = room.now
    room.until("prestop", minutes=40)
    type(room.machine.account).objects.update(monitor_only=True)
    room.go(2)
    assert IdleStop.objects.get().why == "monitor_only"


def test_a_hold_that_comes_between_the_order_and_the_call_withholds_it(room, by_alice):
    step, room.driver.step = room.driver.step, lambda: None
    room.until("verifying", minutes=45)
    place_hold(actor=by_alice, instance=room.machine, reason="mine", now=room.now)
    room.driver.step = step
    room.go(1)
    assert room.calls == []
    assert (room.stop.stage, room.stop.why) == ("cancelled", "held")
    assert not Alert.objects.filter(closed_at=None).exists()


def test_use_between_the_order_and_the_call_withholds_it(room):
    step, room.driver.step = room.driver.step, lambda: None
    room.until("verifying", minutes=45)
    room.driver.step = step
    room.go(1, answer="active")
    assert room.calls == []
    assert (room.stop.stage, room.stop.why) == ("cancelled", "in_use")


def test_an_order_that_waited_until_nobody_knows_any_more_is_withheld(room):
    """Its worker was away for hours, and the machine has fallen silent meanwhile."""
    step, room.driver.step = room.driver.step, lambda: None
    room.until("verifying", minutes=45)
    room.driver.step = step
    room.go(1, answer="unknown")
    assert room.calls == []
    assert (room.stop.stage, room.stop.why) == ("cancelled", "use_unknown")


def test_a_stop_that_somebody_else_orders_in_the_same_moment_is_theirs(room, by_alice, monkeypatch):
    look = ordering._objection

    def and_alice_is_quicker(stop, now):
        word = look(stop, now)
        request_stop(actor=by_alice, instance=stop.instance, now=now)
        return word

    monkeypatch.setattr(ordering, "_objection", and_alice_is_quicker)
    room.go(45)
    first = IdleStop.objects.order_by("pk")[0]
    assert (first.stage, first.why, first.operation) == ("cancelled", "under_way", None)
    assert not IdleSaving.objects.exists()


def test_a_stop_that_does_not_last_is_no_stop(room):
    room.until("stopped")
    machine = room.driver.world.machines[room.machine.external_id]
    machine.comes_back_at = room.now + timedelta(seconds=60)
    from fleet.inventory.operations.sweeping import sweep

    for _minute in range(4):
        room.go(1)
        room.driver.poll()
        sweep(now=room.now)
    assert IdleStop.objects.filter(stage="stopped").count() == 0 or IdleSaving.objects.count() == 1
    assert "verifying" in list(IdleStop.objects.get().events.order_by("-pk").values_list("kind", flat=True))[:3]
