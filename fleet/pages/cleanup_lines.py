"""What costs money and nobody may know of: at the provider and not ours, ours and not at the provider, off and charged, ended and not proved.

Read from rows alone, in a number of queries that does not grow with the fleet, and no provider is asked: an account that hangs delays nothing here.
A machine stands in one section, the first that holds, so that no money is counted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind, OperationState
from fleet.inventory.prices import price_now
from fleet.providers.base import Billing, InstanceState, Part, StopSemantics
from fleet.providers.registry import adapters
from fleet.providers.rows import HOURS_PER_MONTH
from fleet.telemetry.models import Agent

# An agent that is heard so long after its machine was gone was not merely on its last words.
LAST_WORDS = timedelta(minutes=10)
HEARD_WITHIN = timedelta(days=1)
# How far back an end that failed is told.
FAILED_WITHIN = timedelta(days=30)
ENDS = (OperationKind.STOP, OperationKind.TERMINATE)
UNREAD = ("ssh", "extra", "provider_labels", "labels")
UNREAD_OF_ACCOUNT = ("credentials", "options", "check_results")


class Kind(StrEnum):
    UNPROVED = "unproved"
    GHOST = "ghost"
    UNMANAGED = "unmanaged"
    STOPPED = "stopped"


ORDER = {kind: place for place, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One machine. `price_per_hour`: what it costs, or cost when that was last known; None = not known, which is not nothing.

    `parts`: what is charged of a machine that is off. `heard_at`: of a ghost whose agent still reports.
    """

    kind: Kind
    instance: Instance
    since: datetime
    price_per_hour: Decimal | None
    operation: Operation | None = None
    heard_at: datetime | None = None
    parts: tuple[Part, ...] = ()

    @property
    def per_month(self) -> Decimal | None:
        return None if self.price_per_hour is None else self.price_per_hour * HOURS_PER_MONTH

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Section by section, the dearest first, what has no price last. Integers, so that a cursor can hold them."""
        millionths = 0 if self.price_per_hour is None else int(self.price_per_hour * 1_000_000)
        return (ORDER[self.kind], self.price_per_hour is None, -millionths, self.instance.pk)

    @property
    def is_doubted(self) -> bool:
        return self.instance.doubted_since is not None and self.instance.gone_at is None


@dataclass(slots=True)
class Total:
    """Of one section, or of all. per_month: currency -> a month; unpriced: machines of which nobody knows what they cost."""

    machines: int = 0
    per_month: dict[str, Decimal] = field(default_factory=dict)
    unpriced: int = 0

    def add(self, line: Line) -> None:
        self.machines += 1
        if line.per_month is None:
            self.unpriced += 1
            return
        currency = line.instance.currency
        self.per_month[currency] = self.per_month.get(currency, Decimal(0)) + line.per_month


def total(lines: Iterable[Line]) -> Total:
    found = Total()
    for line in lines:
        found.add(line)
    return found


def cleanup_lines(*, team_ids: Collection[int], now: datetime) -> list[Line]:
    """Every line of these teams, in the order of `place`."""
    first: dict[int, Line] = {}
    for line in (*unproved(team_ids, now), *reporting(team_ids, now), *listed(team_ids)):
        first.setdefault(line.instance.pk, line)
    return sorted(first.values(), key=lambda line: line.place)


def unproved(team_ids: Collection[int], now: datetime) -> Iterator[Line]:
    """Acts that no reading shows although their provider had its time, and ends that failed and were not asked for again."""
    later = Operation.objects.filter(instance=OuterRef("instance"), requested_at__gt=OuterRef("requested_at"))
    failed = Q(state=OperationState.FAILED, kind__in=ENDS, failed_at__gt=now - FAILED_WITHIN) & ~Exists(later)
    rows = Operation.objects.filter(Q(state__in=OPEN_STATES) | failed, team__in=team_ids, instance__gone_at=None)
    for operation in rows.filter(instance__isnull=False).select_related("instance__account", "account").defer(
        *(f"instance__{name}" for name in UNREAD), *(f"instance__account__{name}" for name in UNREAD_OF_ACCOUNT)
    ):  # fmt: skip
        machine, semantics = operation.instance, semantics_of(operation.account.kind)
        assert machine is not None
        settles = timedelta(seconds=semantics.settle_seconds if semantics else 0)
        if operation.is_open and now - operation.requested_at < settles:
            continue
        price = price_now(machine)
        yield Line(
            kind=Kind.UNPROVED,
            instance=machine,
            since=operation.requested_at,
            price_per_hour=operation.price_per_hour if price is None else price,
            operation=operation,
        )


def reporting(team_ids: Collection[int], now: datetime) -> Iterator[Line]:
    """Machines that are gone for their provider, or whose account was disconnected, and whose agent speaks all the same."""
    rows = Agent.objects.filter(
        instance__team__in=team_ids,
        instance__gone_at__isnull=False,
        revoked_at=None,
        heartbeat_at__gt=F("instance__gone_at") + LAST_WORDS,
    ).filter(heartbeat_at__gt=now - HEARD_WITHIN)
    for agent in rows.select_related("instance__account"):
        yield Line(
            kind=Kind.GHOST,
            instance=agent.instance,
            since=agent.instance.gone_at or now,
            price_per_hour=agent.instance.price_per_hour,
            heard_at=agent.heartbeat_at,
        )


def listed(team_ids: Collection[int]) -> Iterator[Line]:
    """Machines that are there, as the last lists show them or leave them out."""
    charged = Q(state=InstanceState.STOPPED) & ~Q(billing=Billing.NONE)
    wanted = Q(doubted_since__isnull=False) | Q(managed=False) | charged
    for machine in there(team_ids).filter(wanted):
        if machine.doubted_since is not None:
            yield Line(
                kind=Kind.GHOST, instance=machine, since=machine.doubted_since, price_per_hour=machine.price_per_hour
            )
        elif not machine.managed:
            since, price = machine.first_seen_at, price_now(machine)
            yield Line(kind=Kind.UNMANAGED, instance=machine, since=since, price_per_hour=price)
        else:
            yield stopped(machine)


def stopped(machine: Instance) -> Line:
    """A provider that charges a machine in full while it is off is taken at its word, whatever the listing says of disks."""
    semantics = semantics_of(machine.account.kind)
    parts = sorted(semantics.billed_when_stopped) if semantics else []
    full = Part.COMPUTE in parts and machine.billing != Billing.STORAGE
    return Line(
        kind=Kind.STOPPED,
        instance=machine,
        since=machine.state_since,
        price_per_hour=machine.price_per_hour if full else price_now(machine),
        parts=tuple(parts),
    )


def there(team_ids: Collection[int]) -> QuerySet[Instance]:
    rows = Instance.objects.filter(team__in=team_ids, gone_at=None, account__disconnected_at=None)
    return rows.select_related("account").defer(*UNREAD, *(f"account__{name}" for name in UNREAD_OF_ACCOUNT))


def semantics_of(kind: str) -> StopSemantics | None:
    adapter = adapters().get(kind)
    return adapter.semantics if adapter else None
