"""The whole course over rows: from a verdict to a proved stop, and every way back."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from fleet.alerts.models import Alert
from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.idle.shutdown.driver import drive
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.machines import place_hold
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.teams.models import AuditEntry
from tests.fleet.idle.shutdown.conftest import Room


def kinds(stop: IdleStop) -> list[str]:
    return list(stop.events.order_by("pk").values_list("kind", flat=True))


def open_alerts() -> list[str]:
    return list(Alert.objects.filter(closed_at=None).order_by("pk").values_list("cause", flat=True))


def test_the_whole_course(room):
    room.until("stopped")
    stop = room.stop
    assert kinds(stop) == ["warned", "grace", "prestop", "stopping", "ordered", "verifying", "stopped"]
    assert room.calls == [("stop", room.machine.external_id)]
    assert stop.ordered_at - stop.delivered_at >= timedelta(minutes=6)
    operation = Operation.objects.get()
    assert (operation.idempotency_key, operation.state) == (f"idle-stop:{stop.pk}:1", "proved")
    assert open_alerts() == []
    assert IdleSaving.objects.get().stop == stop
    audited = AuditEntry.objects.filter(action__startswith="idle_").order_by("pk").values_list("action", flat=True)
    assert list(audited) == ["idle_stop.warn", "idle_stop.order", "idle_stop.proved", "idle_saving.book"]


def test_a_second_stop_begins_with_a_warning_of_its_own(room):
    room.go(2)
    room.go(1, answer="active")
    assert (room.stage, room.stop.why) == ("cancelled", "active")
    room.go(1)
    assert IdleStop.objects.count() == 2
    assert open_alerts() == ["idle.stop"]
    assert room.stage == "grace"


def test_no_warning_arrived_no_stop(room):
    room.delivers = False
    room.go(20)
    assert room.calls == []
    assert {stop.why for stop in IdleStop.objects.filter(stage="cancelled")} == {"undelivered"}


@pytest.mark.usefixtures("room")
class TestWhatCallsItOff:
    """In grace, each of these ends it, and people are told."""

    @pytest.fixture
    def warned(self, room):
        room.until("grace")
        return room

    def is_off(self, room: Room, why: str) -> None:
        room.go(1.5)
        first = IdleStop.objects.order_by("pk")[0]
        assert (first.stage, first.why) == ("cancelled", why)
        alert = Alert.objects.get(subject=f"idle_stop:{first.pk}")
        assert alert.closed_why == "idle_called_off"
        assert room.calls == []

    def test_use(self, warned):
        warned.judge()
        warned.answer = "active"
        warned.go(1, answer="active")
        self.is_off(warned, "active")

    def test_not_knowing(self, warned):
        warned.go(1.5, answer="unknown")
        self.is_off(warned, "unknown")

    def test_a_hold(self, warned, by_alice):
        place_hold(actor=by_alice, instance=warned.machine, reason="thinking", now=warned.now)
        self.is_off(warned, "held")

    def test_a_policy_that_is_changed(self, warned):
        IdlePolicy.objects.update(revision=2, grace_minutes=120)
        self.is_off(warned, "policy")

    def test_a_policy_that_is_switched_off(self, warned):
        IdlePolicy.objects.update(enabled=False)
        self.is_off(warned, "policy")

    def test_an_exclusion(self, warned, policy):
        policy.excluded.add(warned.machine)
        self.is_off(warned, "policy")

    def test_a_pin(self, warned):
        MachineUse.objects.create(instance=warned.machine, mode="pinned")
        self.is_off(warned, "pinned")

    def test_nobody_manages_it_any_more(self, warned):
        Instance.objects.update(managed=False)
        self.is_off(warned, "unmanaged")

    def test_an_account_that_may_only_be_looked_at(self, warned, rented):
        type(rented).objects.update(monitor_only=True)
        self.is_off(warned, "monitor_only")


class TestNothingBegins:
    @pytest.mark.parametrize(
        "changes",
        [{"action": "alert"}, {"enabled": False}, {"window_from": "recommended"}, {"mode": "pinned"}],
        ids=str,
    )
    def test_under_a_policy_that_does_not_stop(self, room, changes):
        IdlePolicy.objects.update(**changes)
        room.go(2)
        assert not IdleStop.objects.exists()

    @pytest.mark.parametrize("answer", ["active", "unknown", "off"])
    def test_without_a_verdict_of_idle(self, room, answer):
        room.go(2, answer=answer)
        assert not IdleStop.objects.exists()

    def test_on_an_old_verdict(self, room):
        room.judge()
        room.driver.wait(150)
        drive(now=room.now)
        assert not IdleStop.objects.exists()

    def test_of_a_terminate_that_destroys_data_without_a_word_for_it(self, room):
        IdlePolicy.objects.update(action="terminate")
        room.go(2)
        assert not IdleStop.objects.exists()
        assert Alert.objects.get(cause="machine.idle").evidence["values"]["why_not"] == "loses_data"
        IdlePolicy.objects.update(accept_loss=True)
        room.until("stopped")
        assert room.calls == [("terminate", room.machine.external_id)]

    def test_in_office_hours(self, room):
        IdlePolicy.objects.update(office_days=list(range(7)), office_from=time(9), office_until=time(13))
        room.go(2)
        assert not IdleStop.objects.exists()


def test_office_hours_that_begin_in_grace_put_it_off_until_they_end(room):
    IdlePolicy.objects.update(office_days=list(range(7)), office_from=time(12, 5), office_until=time(12, 15))
    room.until("grace")
    room.go(6)
    stop = room.stop
    assert (stop.stage, stop.deadline.time()) == ("grace", time(12, 15))
    alert = Alert.objects.get(cause="idle.stop")
    assert alert.evidence["values"]["put_off"]
    assert list(alert.events.order_by("pk").values_list("kind", flat=True)) == ["opened", "reminded"]
    room.go(6)
    assert room.calls == []
    room.until("stopped", minutes=15)
    assert room.stop.pk == stop.pk


def test_reminders_come_before_the_deadline(room):
    IdlePolicy.objects.update(warn_minutes=[4, 2, 600])
    room.until("stopped")
    alert = Alert.objects.get(cause="idle.stop")
    reminders = list(alert.events.filter(kind="reminded").order_by("at").values_list("at", flat=True))
    before = [round((room.stop.deadline - at).total_seconds() / 60) for at in reminders]
    assert before == [4, 2]


def test_the_owner_has_to_hear_it_on_their_own_channel(room, bob, acme, channel):
    from fleet.alerts.channels.models import Channel, Delivery, Route

    Instance.objects.update(owner=bob)
    own = Channel.objects.create(team=acme, owner=bob, kind="webhook", name="bob's")
    Route.objects.create(channel=own, only_mine=True)
    room.delivers = False
    room.go(1)
    Delivery.objects.filter(channel=channel).update(state="sent", sent_at=room.now)
    room.go(1)
    assert room.stage == "warned"
    Delivery.objects.filter(channel=own).update(state="sent", sent_at=room.now)
    room.go(1)
    assert room.stage == "grace"


def test_a_job_that_is_seen_by_the_last_look_only_is_not_stopped(room, looks_again):
    room.until("prestop")
    looks_again("active")
    room.go(2)
    first = IdleStop.objects.order_by("pk")[0]
    assert (first.stage, first.why) == ("cancelled", "active")
    assert not Operation.objects.exists()
    assert Alert.objects.get(subject=f"idle_stop:{first.pk}").closed_why == "idle_called_off"
