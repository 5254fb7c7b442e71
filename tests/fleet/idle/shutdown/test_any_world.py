"""The driver over rows in random worlds: workers that die, a provider that lies, clocks that jump, people who say later or no, channels that fail.

Whatever happens: nothing is ordered without a warning that had arrived, nothing while a hold is in force, and nothing is called stopped while it is billed.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.alerts.channels.models import Delivery
from fleet.idle.shutdown import carrying, driver, ordering
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.people import snooze_stop, veto_stop
from fleet.inventory.machines import holds_in_force, place_hold, release_hold
from fleet.inventory.models import Hold, Instance
from fleet.providers.base import InstanceState
from fleet.teams.audit import Actor
from tests.fleet.idle.shutdown.test_killed import Killed

EVENTS = st.sampled_from(
    ["long"] * 8
    + ["beat", "beat", "active", "unknown", "hold", "release", "snooze", "veto", "deaf", "lie", "truth"]
    + ["die_carrying", "die_stepping", "jump", "back", "poll"]
)
HOUR = timedelta(hours=1)
SCRIPT = Actor.system("a test")


class World:
    """One random world; `check` is looked at at every order and after every event."""

    def __init__(self, room, monkeypatch) -> None:
        self.room, self.dies, self.orders, self.proofs = room, "", 0, 0
        requested = ordering._requested

        def checked(stop, now):
            self.ordered(stop, now)
            return requested(stop, now)

        monkeypatch.setattr(ordering, "_requested", checked)
        monkeypatch.setattr(driver, "step", self.mortal("stepping", driver.step))
        monkeypatch.setattr(driver, "carry_out", self.mortal("carrying", carrying.carry_out))

    def mortal(self, name, function):
        def stepped(**named):
            if self.dies == f"before {name}":
                self.dies = ""
                raise Killed
            answer = function(**named)
            if self.dies == name:
                self.dies = ""
                raise Killed
            return answer

        return stepped

    def ordered(self, stop, now) -> None:
        self.orders += 1
        heard = Delivery.objects.filter(alert__cause="idle.stop", alert__subject=f"idle_stop:{stop.pk}", state="sent")
        assert heard.exists(), "ordered, and nobody was warned"
        assert stop.delivered_at is not None
        assert not holds_in_force(now=now).filter(instance=stop.instance).exists(), "ordered against a hold"
        assert stop.snoozed_until is None or stop.snoozed_until <= now, "ordered against somebody's word"
        assert self.room.answer == "idle", "ordered while it was not idle"

    def happen(self, event: str) -> None:
        try:
            getattr(self, event)()
        except Killed:
            self.room.driver.wait(130)
        self.check()

    def check(self) -> None:
        for stop in IdleStop.objects.filter(stage="stopped").select_related("instance"):
            self.proofs += 1
            truth = self.room.driver.world.machines[stop.instance.external_id]
            assert truth.state is not InstanceState.RUNNING or truth.since >= stop.ended_at, (
                "called stopped while it is billed"
            )

    def beat(self) -> None:
        self.room.turn()
        self.room.driver.wait(30)

    def long(self) -> None:
        """Six quiet minutes."""
        for _beat in range(6):
            self.room.turn()
            self.room.driver.wait(60)

    def poll(self) -> None:
        self.room.driver.poll()

    def active(self) -> None:
        self.room.answer = "active"
        self.beat()
        self.room.answer = "idle"

    def unknown(self) -> None:
        self.room.answer = "unknown"
        self.beat()
        self.room.answer = "idle"

    def hold(self) -> None:
        until = self.room.now + HOUR / 6
        place_hold(actor=SCRIPT, instance=self.room.machine, reason="mine", until=until, now=self.room.now)

    def release(self) -> None:
        for hold in Hold.objects.filter(ended_at=None):
            release_hold(actor=SCRIPT, hold=hold, now=self.room.now)

    def snooze(self) -> None:
        for stop in IdleStop.objects.filter(ended_at=None, snoozes__lt=10):
            until = self.room.now + HOUR
            snooze_stop(actor=SCRIPT, stop=stop, until=until, now=self.room.now)

    def veto(self) -> None:
        for stop in IdleStop.objects.filter(ended_at=None):
            veto_stop(actor=SCRIPT, stop=stop, reason="no", now=self.room.now)

    def deaf(self) -> None:
        """No channel takes anything for a while."""
        self.room.delivers = False
        self.beat()
        self.beat()
        self.room.delivers = True

    def lie(self) -> None:
        self.room.driver.world.lies.update({"ignored": 2, "lost": 1, "dropped": 1})

    def truth(self) -> None:
        self.room.driver.world.lies.clear()

    def die_carrying(self) -> None:
        self.dies = "carrying"

    def die_stepping(self) -> None:
        self.dies = "before stepping"

    def jump(self) -> None:
        self.room.driver.wait(3_600)

    def back(self) -> None:
        """Every clock is put back."""
        self.room.driver.world.now -= HOUR / 2
        self.room.driver.clock.shift(-1_800)


@pytest.mark.usefixtures("db")
def test_in_any_world(room, monkeypatch):
    world = World(room, monkeypatch)

    @settings(max_examples=14, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(EVENTS, min_size=5, max_size=14))
    def live(events):
        with transaction.atomic():
            truth = room.driver.world.machines[room.machine.external_id]
            room.driver.world.enter(truth, InstanceState.RUNNING)
            room.driver.world.lies.clear()
            room.answer, room.delivers, world.dies = "idle", True, ""
            Instance.objects.update(state="running", billing="full")
            for event in events:
                world.happen(event)
            transaction.set_rollback(True)

    live()
    assert world.orders > 2, "worlds in which nothing comes to an order show nothing"
    assert world.proofs
