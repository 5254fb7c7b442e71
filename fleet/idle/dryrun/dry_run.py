"""One policy tried on what its machines did over the last days: what it would have stopped, given back and hit. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.idle.dryrun.costs import WrongStop
from fleet.idle.dryrun.history import recorded_until
from fleet.idle.dryrun.kept import kept_histories, key_of
from fleet.idle.dryrun.prices import Money, Rates, Tariff, money_of
from fleet.idle.dryrun.quiet import History
from fleet.idle.dryrun.readings import Range
from fleet.idle.dryrun.simulate import Asked, Judged, Stop, Terms, simulate
from fleet.idle.dryrun.tariffs import rates_of, tariffs_of
from fleet.idle.policies.covering import JudgedBy, cores_of, machines_of, way_of, window_of
from fleet.idle.policies.models import IdleAction, IdlePolicy, MachineUse
from fleet.idle.policies.office import hours_of
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.permits import loses_data
from fleet.providers.base import Capability
from fleet.providers.registry import adapters

ZERO = Decimal(0)
LONGEST_DAYS = 90


@dataclass(frozen=True, slots=True)
class Ground:
    """What every window is tried on: the machines, what they did, and what they cost."""

    policy: IdlePolicy
    # By what its histories are kept in the cache.
    past: str
    span: Range
    machines: Mapping[int, Instance]
    # Covered, and never stopped: the provider cannot, or data would be lost and the policy does not accept that.
    spared: Sequence[Instance]
    histories: Sequence[History]
    tariffs: Mapping[int, Tariff]
    rates: Rates
    cost: WrongStop

    @property
    def idle_gpu_hours(self) -> float:
        return sum(history.idle_gpu_hours for history in self.histories)

    @property
    def watched(self) -> timedelta:
        return sum((history.watched for history in self.histories), timedelta())

    def terms(self, window: timedelta) -> Terms:
        return Terms(window, timedelta(minutes=self.policy.grace_minutes), hours_of(self.policy))


@dataclass(frozen=True, slots=True)
class Counted:
    """A stop with its money."""

    stop: Stop
    money: Money


@dataclass(frozen=True, slots=True)
class Totals:
    """`saved` and `harm` in the team's currency, of the stops whose price is known; `unpriced`: of how many it is not."""

    stops: int
    wrong: int
    unclear: int
    gpu_hours: float
    saved: Decimal
    harm: Decimal
    unpriced: int
    machines: int

    @property
    def net(self) -> Decimal:
        return self.saved - self.harm


@dataclass(frozen=True, slots=True)
class DryRun:
    ground: Ground
    window: timedelta
    stops: Sequence[Counted]
    asked: Sequence[Asked]

    @property
    def totals(self) -> Totals:
        money = [one.money for one in self.stops]
        stops = [one.stop for one in self.stops]
        return Totals(
            stops=len(stops),
            wrong=sum(stop.is_wrong for stop in stops),
            unclear=sum(stop.judged is Judged.UNCLEAR for stop in stops),
            gpu_hours=sum(stop.gpu_hours for stop in stops),
            saved=sum((one.saved or ZERO for one in money if one.net is not None), ZERO),
            harm=sum((one.harm or ZERO for one in money if one.net is not None), ZERO),
            unpriced=sum(one.net is None for one in money),
            machines=len({stop.instance_id for stop in stops}),
        )


def dry_run(*, policy: IdlePolicy, days: int, now: datetime, window: timedelta | None = None) -> DryRun:
    """`window` None: the policy's own. As many queries for a thousand machines as for one."""
    return try_window(ground_of(policy=policy, days=days, now=now), window or window_of(policy))


def try_window(ground: Ground, window: timedelta) -> DryRun:
    stops, asked = simulate(ground.histories, ground.terms(window))
    return DryRun(ground, window, [counted(ground, stop) for stop in stops], asked)


def counted(ground: Ground, stop: Stop) -> Counted:
    tariff = ground.tariffs.get(stop.instance_id)
    hours = ground.cost.of(stop.gpus)
    return Counted(stop, money_of(stop, tariff, ground.rates, wrong_stop_gpu_hours=hours))


def ground_of(*, policy: IdlePolicy, days: int, now: datetime, cost: WrongStop | None = None) -> Ground:
    until = recorded_until(now)
    span = Range(until - timedelta(days=days), until)
    covered = covered_by(policy)
    machines = covered.machines
    return Ground(
        policy=policy,
        past=key_of(machines, covered.ways, days),
        span=span,
        machines={machine.pk: machine for machine in machines},
        spared=covered.spared,
        histories=kept_histories(machines, covered.ways, days=days, now=now),
        tariffs=tariffs_of(machines, span, kind=kind_of(policy)),
        rates=rates_of(policy.team, span),
        cost=cost or cost_of(policy),
    )


@dataclass(frozen=True, slots=True)
class Covered:
    """The machines that a policy covers, how each is judged, and those that it would never stop."""

    machines: Sequence[Instance]
    spared: Sequence[Instance]
    ways: Mapping[int, JudgedBy]

    @property
    def gpus(self) -> int:
        return sum(machine.gpu_count or 0 for machine in self.machines)


def covered_by(policy: IdlePolicy) -> Covered:
    """What people said of single machines outweighs the policy, as when they are judged."""
    kind = kind_of(policy)
    machines: list[Instance] = []
    spared: list[Instance] = []
    for machine in machines_of(policy):
        (spared if is_spared(machine, policy, kind) else machines).append(machine)
    uses = MachineUse.objects.filter(instance__in=[machine.pk for machine in machines]).exclude(mode="")
    modes = dict(uses.values_list("instance_id", "mode"))
    cores = cores_of(machines)
    ways = {machine.pk: way_of(policy, modes.get(machine.pk, ""), cores=cores.get(machine.pk)) for machine in machines}
    return Covered(machines, spared, ways)


def cost_of(policy: IdlePolicy) -> WrongStop:
    return WrongStop(policy.wrong_stop_gpu_hours, policy.restart_minutes)


def kind_of(policy: IdlePolicy) -> OperationKind:
    """A policy that only tells is tried as one that stops."""
    return OperationKind.TERMINATE if policy.action == IdleAction.TERMINATE else OperationKind.STOP


def is_spared(machine: Instance, policy: IdlePolicy, kind: OperationKind) -> bool:
    """Not where people stop by hand what they are told of."""
    if policy.action == IdleAction.ALERT:
        return False
    capability = Capability.TERMINATE if kind is OperationKind.TERMINATE else Capability.STOP
    if not can(machine.account, capability):
        return True
    return loses_data(adapters()[machine.account.kind].semantics, kind) and not policy.accept_loss
