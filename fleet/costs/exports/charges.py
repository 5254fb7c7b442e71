"""What an export is written from: one charge is one machine's (or account's) day on one meter, for one group of owners.

Read day by day, so that a process holds one day of a fleet at a time and no month of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from fleet.costs.month import Month
from fleet.costs.spend.converting import rates_into
from fleet.costs.spend.figures import UsedRate
from fleet.costs.spend.models import Adjustment, CostDay, CostGroup
from fleet.inventory.models import Instance
from fleet.providers.registry import adapters
from fleet.states import GpuState
from fleet.teams.models import Team

AMOUNTS = {state: f"{state.value}_amount" for state in GpuState}
# A machine that is off has no GPU that does anything.
GPU_SECONDS = {state: f"{state.value}_gpu_seconds" for state in GpuState if state is not GpuState.STOPPED}
READ = ("instance_id", "group_id", "meter", "currency", "amount", "seconds", "unpriced_seconds")
ROW = (*READ, *AMOUNTS.values(), *GPU_SECONDS.values())


@dataclass(frozen=True, slots=True)
class Account:
    pk: int
    kind: str
    # As its adapter calls it; of accounts that people keep by hand, what they call them.
    provider: str
    name: str
    external_id: str = ""

    @property
    def billing_id(self) -> str:
        return self.external_id or f"account-{self.pk}"


@dataclass(frozen=True, slots=True)
class Machine:
    pk: int
    external_id: str
    name: str
    instance_type: str = ""
    gpu_model: str = ""
    gpu_count: int | None = None
    vcpus: int | None = None
    ram_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Whose:
    """What a charge is told apart by, as it was when it was made."""

    pk: int
    account: Account
    project: str = ""
    owner: str = ""
    job: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    gpu_model: str = ""
    market: str = ""
    tenancy: str = ""
    region: str = ""
    idle_share: bool = False


@dataclass(frozen=True, slots=True)
class Charge:
    """`amount` is the sum of `states`. `ratio`: its part of what the machine cost on this meter that day, None where it is all of it."""

    day: date
    starts_at: datetime
    ends_at: datetime
    machine: Machine | None
    whose: Whose
    meter: str
    currency: str
    amount: Decimal
    states: Mapping[GpuState, Decimal]
    gpu_seconds: Mapping[GpuState, float]
    seconds: float
    unpriced_seconds: float
    ratio: Decimal | None = None

    @property
    def key(self) -> tuple[int, int | None, str, str]:
        """Charges that have it in common are parts of one."""
        return (self.whose.account.pk, self.machine.pk if self.machine else None, self.meter, self.currency)


@dataclass(slots=True)
class Day:
    day: date
    starts_at: datetime
    ends_at: datetime
    charges: list[Charge]
    adjustments: list[Adjustment]


def days_of(team: Team, month: Month) -> Iterator[Day]:
    """Each day of the month of the team's time zone, days to come included: somebody may have typed an adjustment for one."""
    names = Names()
    day = month.first
    while day < month.next_first:
        starts_at, ends_at = midnight(day, month), midnight(day + timedelta(days=1), month)
        rows = CostDay.objects.filter(team=team, day=day).order_by("instance_id", "meter", "currency", "group_id")
        found = list(rows.values_list(*ROW))
        names.read(groups={row[1] for row in found}, instances={row[0] for row in found if row[0]})
        charges = [names.charge(day, starts_at, ends_at, row) for row in found]
        typed = Adjustment.objects.filter(team=team, at__gte=starts_at, at__lt=ends_at).order_by("at", "pk")
        yield Day(day, starts_at, ends_at, with_ratios(charges), list(typed))
        day += timedelta(days=1)


def midnight(day: date, month: Month) -> datetime:
    return datetime.combine(day, time(), month.zone).astimezone(UTC)


class Names:
    """Groups and machines by id, each read once."""

    def __init__(self) -> None:
        self.groups: dict[int, Whose] = {}
        self.machines: dict[int, Machine] = {}

    def read(self, *, groups: Collection[int], instances: Collection[int]) -> None:
        rows = CostGroup.objects.filter(pk__in=set(groups) - set(self.groups))
        for group in rows.select_related("account", "project", "owner"):
            self.groups[group.pk] = whose_of(group)
        names = [one for one in Machine.__dataclass_fields__ if one != "pk"]
        wanted = Instance.objects.filter(pk__in=set(instances) - set(self.machines))
        for pk, *values in wanted.values_list("pk", *names):
            self.machines[pk] = Machine(pk, *values)

    def charge(self, day: date, starts_at: datetime, ends_at: datetime, row: tuple[Any, ...]) -> Charge:
        instance_id, group_id, meter, currency, amount, seconds, unpriced = row[: len(READ)]
        amounts, gpu_seconds = row[len(READ) :][: len(AMOUNTS)], row[len(READ) + len(AMOUNTS) :]
        return Charge(
            day,
            starts_at,
            ends_at,
            self.machines[instance_id] if instance_id else None,
            self.groups[group_id],
            meter,
            currency,
            amount,
            dict(zip(AMOUNTS, amounts, strict=True)),
            dict(zip(GPU_SECONDS, gpu_seconds, strict=True)),
            seconds,
            unpriced,
        )


def whose_of(group: CostGroup) -> Whose:
    account = group.account
    adapter = adapters().get(account.kind)
    provider = adapter.label if adapter and account.kind != "manual" else account.name
    return Whose(
        group.pk,
        Account(account.pk, account.kind, provider, account.name, account.external_id),
        group.project.slug if group.project else "",
        group.owner.get_username() if group.owner else "",
        group.job,
        group.labels,
        group.gpu_model,
        group.market,
        group.tenancy,
        group.region,
        group.idle_share,
    )


def with_ratios(charges: list[Charge]) -> list[Charge]:
    """The parts of what was split say which part they are; the ratios of one machine, day and meter add up to 1."""
    parts: dict[tuple[object, ...], list[Charge]] = {}
    for one in charges:
        parts.setdefault(one.key, []).append(one)
    ratios = {key: split_evenly(weights_of(found)) for key, found in parts.items() if len(found) > 1}
    return [replace(one, ratio=ratios[one.key].pop(0)) if one.key in ratios else one for one in charges]


def weights_of(parts: Iterable[Charge]) -> list[Decimal]:
    """By money; of what cost nothing by time, and of what took none in equal parts."""
    found = list(parts)
    by_money = [abs(one.amount) for one in found]
    by_time = [Decimal(repr(one.seconds)) for one in found]
    return next((weights for weights in (by_money, by_time) if any(weights)), [Decimal(1)] * len(found))


def split_evenly(weights: list[Decimal], whole: Decimal = Decimal(1), digits: int = 14) -> list[Decimal]:
    """`whole` by weight, in so many digits; the last part takes the remainder, so that the parts add up to it exactly."""
    total = sum(weights, Decimal(0))
    step = Decimal(1).scaleb(-digits)
    parts = [(whole * weight / total).quantize(step) for weight in weights[:-1]]
    return [*parts, whole - sum(parts, Decimal(0))]


class Rates:
    """What a charge is worth in the team's currency, by the rate of its day; nothing where there is none."""

    def __init__(self, team: Team, month: Month) -> None:
        self.into = team.currency
        found = rates_into(team_id=team.pk, currency=self.into, start=month.first, end=month.next_first)
        self.by_day = {(one.currency, day): (one.factor, one.used) for one in found for day in one.days()}

    def convert(self, amount: Decimal, currency: str, day: date) -> tuple[Decimal, UsedRate | None] | None:
        if currency == self.into:
            return amount, None
        if (known := self.by_day.get((currency, day))) is None:
            return None
        factor, used = known
        return (amount * factor).quantize(Decimal("1e-14")), used
