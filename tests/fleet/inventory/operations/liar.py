"""A provider in this process whose truth the test knows, and that can be told to lie about it. Its clock is the test's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    Billing,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    InstanceState,
    Money,
    Part,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
)
from fleet.providers.errors import NotFound, PartialCreate, RateLimited, Unavailable, WrongState

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
PASSING = {
    InstanceState.PROVISIONING: (20, InstanceState.RUNNING),
    InstanceState.STARTING: (20, InstanceState.RUNNING),
    InstanceState.STOPPING: (20, InstanceState.STOPPED),
    InstanceState.TERMINATING: (20, InstanceState.TERMINATED),
}
BILLING = {
    InstanceState.STOPPED: Billing.STORAGE,
    InstanceState.TERMINATED: Billing.NONE,
}


@dataclass
class Machine:
    id: str
    name: str
    state: InstanceState
    since: datetime
    started_at: datetime | None = None
    listed_from: datetime | None = None
    comes_back_at: datetime | None = None
    # What a passing state ends in, where that is not what was asked for.
    instead: InstanceState | None = None

    @property
    def billing(self) -> Billing:
        return BILLING.get(self.state, Billing.FULL)


@dataclass
class World:
    """The truth. `lies`: how many more calls each lie answers; `until`: how long reads and calls fail."""

    now: datetime = NOON
    machines: dict[str, Machine] = field(default_factory=dict)
    images: dict[str, tuple[ProviderImage, datetime]] = field(default_factory=dict)
    lies: dict[str, int] = field(default_factory=dict)
    until: dict[str, datetime] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    # Called with the name of each call before and after it, so that a test can end the worker there.
    interrupt: Callable[[str], None] = lambda _step: None
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        for machine in self.machines.values():
            self._settle(machine)

    def _settle(self, machine: Machine) -> None:
        lasts, following = PASSING.get(machine.state, (0, machine.state))
        if lasts and self.now - machine.since >= timedelta(seconds=lasts):
            self.enter(machine, machine.instead or following)
            machine.instead = None
        if machine.comes_back_at and self.now >= machine.comes_back_at:
            machine.comes_back_at = None
            self.enter(machine, InstanceState.RUNNING)

    def enter(self, machine: Machine, state: InstanceState) -> None:
        machine.state, machine.since = state, self.now
        if state is InstanceState.RUNNING:
            machine.started_at = self.now

    def takes(self, lie: str) -> bool:
        left = self.lies.get(lie, 0)
        self.lies[lie] = max(left - 1, 0)
        return left > 0

    def add(self, name: str = "train-01", state: InstanceState = InstanceState.RUNNING) -> Machine:
        machine = Machine(f"m-{next(self.ids)}", name, state, self.now, self.now)
        self.machines[machine.id] = machine
        return machine

    def present(self, machine: Machine) -> bool:
        """Whether its provider names it at all; terminated ones are dropped at once, the hard case."""
        late = machine.listed_from is not None and self.now < machine.listed_from
        return not late and machine.state is not InstanceState.TERMINATED


class Liar:
    """Lies: ignored (accepted, nothing happens), forgotten (begins and goes back), lost (done, no answer), dropped (not done, no answer),
    partial, late (a new machine is listed later), returns (terminated and back again), busy (429), gone (410).
    """

    kind: ClassVar[str] = "liar"
    label: ClassVar[str] = "Liar"
    fields: ClassVar[tuple[Field, ...]] = (Field(name="key", label="Key", secret=True),)
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.OFFERS,
        Capability.BALANCE,
        Capability.METRICS,
        Capability.NOTICES,
        Capability.COSTS,
    }
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ()
    semantics: ClassVar[StopSemantics] = StopSemantics(
        can_stop=True,
        billed_when_stopped=frozenset({Part.BOOT_DISK}),
        lost_on_stop=frozenset({Part.GPU_SLOT}),
        lost_on_terminate=frozenset({Part.BOOT_DISK}),
        settle_seconds=60,
    )
    create_is_idempotent: ClassVar[bool] = True
    world: ClassVar[World] = World()

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def verify(self) -> AccountInfo:
        return AccountInfo()

    def instances(self) -> Iterator[ProviderInstance]:
        self._reached("instances")
        yield from [shown(machine) for machine in self.world.machines.values() if self.world.present(machine)]
        self.world.interrupt("after instances")

    def instance(self, ref: Ref) -> ProviderInstance | None:
        self._reached("instance", reading_one=True)
        machine = self.world.machines.get(ref.external_id)
        found = shown(machine) if machine and self.world.present(machine) else None
        self.world.interrupt("after instance")
        return None if self.world.takes("gone") else found

    def images(self) -> Iterator[ProviderImage]:
        self._reached("images")
        for image, ready_at in self.world.images.values():
            yield image if ready_at > self.world.now else replace(image, state=ImageState.READY)

    def start(self, ref: Ref) -> None:
        self._act("start", ref, InstanceState.STARTING, {InstanceState.STOPPED})

    def stop(self, ref: Ref) -> None:
        self._act("stop", ref, InstanceState.STOPPING, {InstanceState.RUNNING, InstanceState.STARTING})

    def terminate(self, ref: Ref) -> None:
        self._act("terminate", ref, InstanceState.TERMINATING, set(InstanceState) - {InstanceState.TERMINATED})

    def reboot(self, ref: Ref) -> None:
        self._act("reboot", ref, InstanceState.STARTING, {InstanceState.RUNNING})

    def _act(self, word: str, ref: Ref, state: InstanceState, allowed: set[InstanceState]) -> None:
        self._reached(word)
        self.world.calls.append((word, ref.external_id))
        machine = self.world.machines.get(ref.external_id)
        if machine is None:
            if word == "terminate":
                return
            raise NotFound("no such machine")
        if self.world.takes("dropped"):
            raise Unavailable("500")
        if self.world.takes("ignored"):
            return
        self._do(machine, state, allowed)
        self.world.interrupt(f"after {word}")
        if self.world.takes("lost"):
            raise Unavailable("time-out")

    def _do(self, machine: Machine, state: InstanceState, allowed: set[InstanceState]) -> None:
        if machine.state is state or (
            PASSING.get(state, (0, None))[1] is machine.state and machine.state not in allowed
        ):
            return
        if machine.state not in allowed:
            raise WrongState(f"it is {machine.state}")
        machine.instead = machine.state if self.world.takes("forgotten") else None
        self.world.enter(machine, state)
        if state is InstanceState.TERMINATING and self.world.takes("returns"):
            machine.comes_back_at = self.world.now + timedelta(seconds=200)

    def create(self, spec: CreateSpec, token: str) -> Ref:
        self._reached("create")
        self.world.calls.append(("create", token))
        if self.world.takes("dropped"):
            raise Unavailable("500")
        made = self._made(spec, token)
        self.world.interrupt("after create")
        if self.world.takes("partial"):
            raise PartialCreate("no address free", Ref(made.id, "r1"))
        if self.world.takes("lost"):
            raise Unavailable("time-out")
        return Ref(made.id, "r1")

    def _made(self, spec: CreateSpec, token: str) -> Machine:
        if self.create_is_idempotent and token in self.world.tokens:
            return self.world.machines[self.world.tokens[token]]
        machine = self.world.add(f"{spec.name}-{token}", InstanceState.PROVISIONING)
        if self.world.takes("late"):
            machine.listed_from = self.world.now + timedelta(seconds=300)
        self.world.tokens[token] = machine.id
        return machine

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        self._reached("save_image")
        image = ProviderImage(f"img-{next(self.world.ids)}", name, self.world.now, state=ImageState.PENDING)
        self.world.images[image.external_id] = image, self.world.now + timedelta(seconds=60)
        self.world.calls.append(("save_image", ref.external_id))
        if self.world.takes("lost"):
            raise Unavailable("time-out")
        return image

    def _reached(self, word: str, *, reading_one: bool = False) -> None:
        self.world.interrupt(f"before {word}")
        if self.world.until.get("broken", self.world.now) > self.world.now:
            raise Unavailable("500")
        if self.world.takes("busy"):
            raise RateLimited("slow down", retry_after=20)
        if not reading_one and self.world.lies.get("gone", 0):
            self.world.takes("gone")
            raise NotFound("410 Gone")


class ListsOnly(Liar):
    """The same provider without a way to ask for one machine."""

    kind: ClassVar[str] = "lists_only"
    capabilities: ClassVar[frozenset[Capability]] = Liar.capabilities - {Capability.FIND}
    create_is_idempotent: ClassVar[bool] = False


def shown(machine: Machine) -> ProviderInstance:
    return ProviderInstance(
        ref=Ref(machine.id, "r1"),
        name=machine.name,
        state=machine.state,
        raw_state=machine.state.value,
        billing=machine.billing,
        rate=Money(Decimal("2.5"), "USD"),
        storage_rate=Money(Decimal("0.05"), "USD"),
        started_at=machine.started_at,
    )
