"""What people get to read when things go wrong in the usual ways: table by table, the messages that go out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.alerts.channels.models import Delivery
from fleet.alerts.choices import update_rule
from fleet.alerts.door import raise_event
from fleet.alerts.models import Alert
from fleet.alerts.people import acknowledge_alert
from fleet.inventory.models import Instance
from fleet.teams.members import remove_member
from fleet.teams.models import Membership
from tests.fleet.alerts.channels.conftest import work
from tests.fleet.alerts.fleet import TestFleet

STEP_SECONDS = 30.0
QUIET, RESOLVED = "node-0 went quiet", "Resolved: node-0 went quiet"
AGAIN = "Again: node-0 went quiet"
OWN = "Rackrent itself has trouble"
HOT = "node-0 runs its GPUs slower than it could"


@dataclass
class Scene:
    fleet: TestFleet
    people: Mapping[str, Any]
    by: Callable[..., Any]
    clock: Any

    def pass_minutes(self, minutes: float) -> None:
        """The machines report, the rules are looked at, and what is due goes out."""
        for _step in range(round(minutes * 60 / STEP_SECONDS)):
            self.clock.move_to(self.fleet.now + timedelta(seconds=STEP_SECONDS))
            self.fleet.pass_time(STEP_SECONDS, step=STEP_SECONDS)
            work()

    def silent(self) -> None:
        self.fleet.silent = {"node-0"}

    def all_silent(self) -> None:
        self.fleet.silent = {machine.name for machine in self.fleet.machines}

    def heard(self) -> None:
        self.fleet.silent = set()

    def hot(self) -> None:
        """It is the only machine that is left."""
        Instance.objects.exclude(name="node-0").update(gone_at=self.fleet.now)
        self.fleet.gpu = {"temperature_celsius": 92.0}

    def cool(self) -> None:
        self.fleet.gpu = {}

    def bob_acknowledges(self) -> None:
        acknowledge_alert(actor=self.by(self.people["bob"]), alert=Alert.objects.get(), now=self.fleet.now)

    def bob_leaves(self) -> None:
        remove_member(
            actor=self.by(self.people["alice"]), membership=Membership.objects.get(user=self.people["bob"])
        )  # fmt: skip

    def clock_jumps_ahead(self) -> None:
        """Nobody could report in the hours that there never were."""
        self.all_silent()
        self.fleet.now += timedelta(hours=3)

    def clock_goes_back(self) -> None:
        self.fleet.now -= timedelta(hours=3)

    def rule_off(self) -> None:
        self._edit(enabled=False)

    def rule_urgent(self) -> None:
        self._edit(enabled=True, severity="urgent")

    def rule_above(self) -> None:
        self._edit(enabled=True, thresholds={"celsius": 100})

    def _edit(self, **fields: Any) -> None:
        self.fleet.now += timedelta(seconds=1)
        update_rule(
            actor=self.by(self.people["alice"]), team=self.fleet.team, kind="thermal", now=self.fleet.now, **fields
        )


S = Scene
# What happens, and how many minutes pass then; and all that the team's channel is told.
STORIES: Mapping[str, tuple[list[tuple[Callable[[Scene], None], float]], list[str]]] = {
    "a machine goes quiet and comes back": ([(S.silent, 5), (S.heard, 5)], [QUIET, RESOLVED]),
    "a machine goes quiet again within the hour": (
        [(S.silent, 3), (S.heard, 3), (S.silent, 3)],
        [QUIET, RESOLVED, AGAIN],
    ),
    "an agent flaps: the third time is the last word until it was quiet for half an hour": (
        [*[(S.silent, 2.0), (S.heard, 2.0)] * 6, (S.heard, 33.0)],
        [QUIET, RESOLVED, AGAIN, RESOLVED, AGAIN, RESOLVED, "Comes and goes: node-0 went quiet", RESOLVED],
    ),
    "nobody answers for a quarter of an hour": (
        [(S.silent, 18), (S.heard, 3)],
        [QUIET, "Escalated: node-0 went quiet", RESOLVED],
    ),
    "a person leaves who works on it": (
        [(S.silent, 2), (S.bob_acknowledges, 2), (S.bob_leaves, 2), (S.heard, 3)],
        [
            QUIET,
            "Acknowledged: node-0 went quiet",
            "Nobody works on it any more: node-0 went quiet",
            RESOLVED,
        ],
    ),
    # Nobody can tell it from hours in which the rules were not looked at; no machine is blamed for it.
    "the clock jumps ahead": ([(S.clock_jumps_ahead, 0.5), (S.heard, 5)], [OWN, f"Resolved: {OWN}"]),
    "the clock jumps ahead and a machine is really silent": (
        [(S.clock_jumps_ahead, 0.5), (S.heard, 0.5), (S.silent, 3)],
        [OWN, f"Resolved: {OWN}", QUIET],
    ),
    "the clock goes back while a machine is silent": ([(S.silent, 0.5), (S.clock_goes_back, 3)], [QUIET]),
    "a rule is switched off while it fires": ([(S.hot, 6), (S.rule_off, 2)], [HOT, f"Resolved: {HOT}"]),
    "a rule is made urgent while it fires": ([(S.hot, 6), (S.rule_urgent, 2)], [HOT, f"Got worse: {HOT}"]),
    "a rule's limit is raised beyond it while it fires": (
        [(S.hot, 6), (S.rule_above, 2), (S.cool, 2)],
        [HOT, f"Resolved: {HOT}"],
    ),
    "a provider is out, all of its machines at once": (
        [(S.all_silent, 3), (S.heard, 3)],
        ["Cloud is out of reach", "Resolved: Cloud is out of reach"],
    ),
}


@pytest.fixture
def scene(fleet, cloud, alice, bob, by, clock, recorder, make_channel) -> Scene:
    for number in range(3):
        fleet.add(cloud, f"node-{number}")
    make_channel()
    made = Scene(fleet, {"alice": alice, "bob": bob}, by, clock)
    made.pass_minutes(1)
    return made


@pytest.mark.parametrize("story", STORIES)
def test_what_is_told(story, scene, recorder):
    happens, told = STORIES[story]
    for act, minutes in happens:
        act(scene)
        scene.pass_minutes(minutes)
    assert recorder.titles == told


def test_an_outage_of_a_provider_over_300_machines_is_one_message_and_one_at_its_end(fleet, cloud, by, clock, recorder, make_channel):  # fmt: skip
    for number in range(300):
        fleet.add(cloud, f"node-{number}", gpus=1)
    make_channel()
    scene = Scene(fleet, {}, by, clock)
    scene.pass_minutes(0.5)
    scene.all_silent()
    scene.pass_minutes(2)
    (message,) = recorder.sent
    assert message.title == "Cloud is out of reach"
    assert dict(message.facts)["Signals"] == "300"
    assert dict(message.facts)["At stake"] == "$3,600.00 an hour"
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}
    scene.heard()
    scene.pass_minutes(2)
    assert recorder.titles[1:] == ["Resolved: Cloud is out of reach"]


@pytest.mark.usefixtures("clock")
def test_300_machines_that_go_quiet_one_by_one_are_three_messages_at_most(acme, make_instance, recorder, make_channel, clock):  # fmt: skip
    make_channel()
    for number in range(300):
        machine = make_instance(name=f"m-{number:03}")
        raise_event(team=acme, cause="machine.unreachable", subject=f"instance:{machine.pk}", severity="urgent", instance=machine, now=timezone.now())  # fmt: skip
        if number in {0, 150}:
            work()
            clock.shift(5)
    work()
    assert [message.title.split(":")[0] for message in recorder.sent] == ["m-000 went quiet", "150 alerts", "149 alerts"]  # fmt: skip
