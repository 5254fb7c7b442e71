"""What pages and the API say of a month's comparison: lines of a machine and of one kind as one, the largest difference first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Exists, OuterRef

from fleet.costs.bills.adjusting import Spot, accepted_of, may_accept, outstanding, spot_of
from fleet.costs.bills.matching import ZERO, Status
from fleet.costs.bills.models import AcceptedLine, Bill, ReconciliationLine
from fleet.costs.bills.models import Reconciliation as Made
from fleet.costs.spend.spend import By, spend
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.models import Team


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one kind, in all lines of a group. `start`, `end`: the times that the evidence names; `evidence`: of the first line that has any."""

    kind: str
    amount: Decimal
    evidence: dict[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """`lines`: their ids. `open_lines`: those that can be counted as billed. `accepted`: what is already."""

    instance: Instance | None
    name: str
    meter: str
    status: Status
    counted: Decimal
    billed: Decimal
    left: Decimal
    accepted: Decimal
    starts_at: datetime
    ends_at: datetime
    lines: tuple[int, ...]
    open_lines: tuple[int, ...]
    explanations: tuple[Explanation, ...]

    @property
    def difference(self) -> Decimal:
        return self.billed - self.counted


@dataclass(frozen=True, slots=True)
class Part:
    """How many lines compare in one way. Of matched ones the amount is what was billed; else the difference."""

    status: Status
    amount: Decimal
    lines: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """counted + explained + left = billed. `accepted`: of the difference, what adjustments count as billed by now."""

    id: int
    account: ProviderAccount
    month: date
    currency: str
    counted: Decimal
    billed: Decimal
    explained: Decimal
    left: Decimal
    accepted: Decimal
    made_at: datetime
    parts: tuple[Part, ...]
    groups: tuple[Group, ...] = field(default_factory=tuple)

    @property
    def difference(self) -> Decimal:
        return self.billed - self.counted

    @property
    def line_count(self) -> int:
        return sum(part.lines for part in self.parts)

    @property
    def can_accept_explained(self) -> bool:
        return any(group.open_lines and not group.left for group in self.groups)


def reconciliation_of(account: ProviderAccount, month: date, currency: str = "") -> Reconciliation | None:
    """Of the currency that most was billed in, unless one is named. None: no bill has lines of this month."""
    made = Made.objects.filter(account=account, month=month.replace(day=1)).select_related("account")
    chosen = made.filter(currency=currency) if currency else made.order_by("-billed")
    found = chosen.first()
    return reconciliation(found) if found is not None else None


def reconciliation(made: Made) -> Reconciliation:
    rows = list(made.lines.select_related("instance", "reconciliation").order_by("starts_at", "pk"))
    done = accepted_of(rows)
    groups = sorted(groups_of(rows, done), key=lambda group: abs(group.difference), reverse=True)
    return Reconciliation(
        id=made.pk,
        account=made.account,
        month=made.month,
        currency=made.currency,
        counted=made.counted,
        billed=made.billed,
        explained=made.explained,
        left=made.left,
        accepted=sum((group.accepted for group in groups), ZERO),
        made_at=made.made_at,
        parts=parts_of(made, rows),
        groups=tuple(groups),
    )


def parts_of(made: Made, rows: Sequence[ReconciliationLine]) -> tuple[Part, ...]:
    parts = [Part(Status.MATCHED, made.matched, made.matched_lines)]
    for status in (Status.MISSING_HERE, Status.MISSING_THERE, Status.DIFFERS):
        of_it = [row for row in rows if row.status == status]
        parts.append(Part(status, sum((row.billed - row.counted for row in of_it), ZERO), len(of_it)))
    return tuple(parts)


def groups_of(rows: Iterable[ReconciliationLine], done: dict[Spot, Decimal]) -> Iterator[Group]:
    found: dict[tuple[object, ...], list[ReconciliationLine]] = defaultdict(list)
    for row in rows:
        found[row.instance_id, row.name, row.meter, row.status, not row.left].append(row)
    for lines in found.values():
        yield group_of(lines, done)


def group_of(rows: list[ReconciliationLine], done: dict[Spot, Decimal]) -> Group:
    first = rows[0]
    return Group(
        instance=first.instance,
        name=first.name,
        meter=first.meter,
        status=Status(first.status),
        counted=sum((row.counted for row in rows), ZERO),
        billed=sum((row.billed for row in rows), ZERO),
        left=sum((row.left for row in rows), ZERO),
        accepted=sum((done.get(spot_of(row), ZERO) for row in rows), ZERO),
        starts_at=min(row.starts_at for row in rows),
        ends_at=max(row.ends_at for row in rows),
        lines=tuple(row.pk for row in rows),
        open_lines=tuple(row.pk for row in rows if may_accept(row, done.get(spot_of(row), ZERO))),
        explanations=tuple(explanations_of(rows)),
    )


def explanations_of(rows: Iterable[ReconciliationLine]) -> Iterator[Explanation]:
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    evidence: dict[str, dict[str, str]] = {}
    for reason in (reason for row in rows for reason in row.reasons):
        amounts[reason["kind"]] += Decimal(reason["amount"])
        told = {name: value for name, value in reason.items() if name not in {"kind", "amount"}}
        if told:
            evidence.setdefault(reason["kind"], told)
    for kind, amount in sorted(amounts.items(), key=lambda item: abs(item[1]), reverse=True):
        yield Explanation(kind, amount, evidence.get(kind, {}))


@dataclass(frozen=True, slots=True)
class ConfirmedAccount:
    account: ProviderAccount
    source: str
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Confirmed:
    """How much of a month's spend bills bear out, from 0 to 1; None where nothing was spent that can be added up."""

    accounts: tuple[ConfirmedAccount, ...]
    share: Decimal | None


def confirmed_by_bills(*, team: Team, start: date, end: date) -> Confirmed:
    """Of [start, end), days of one month of the team. Matched is confirmed, and so is what was counted as billed since."""
    made = list(Made.objects.filter(account__team=team, month=start.replace(day=1)).select_related("account"))
    bills = newest_bills(made)
    spent = spend(team=team, start=start, end=end, by=(By.ACCOUNT,))
    whole, settled, confirmed = spent.all.total, settled_by(made), ZERO
    for one in made:
        row = spent.rows.get((one.account_id,))
        if row is not None and one.currency in row.amounts:
            confirmed += share_of(one, row.amounts[one.currency], settled.get(one.pk, ZERO)) * row.total
    accounts = tuple(
        ConfirmedAccount(one.account, bills[one.account_id].source, bills[one.account_id].imported_at)
        for one in made
        if one.account_id in bills
    )
    return Confirmed(accounts, min(confirmed / whole, Decimal(1)) if whole > 0 else None)


def share_of(made: Made, spent: Decimal, settled: Decimal) -> Decimal:
    """Of an account's month: what its bill has not come to yet is not confirmed either."""
    confirmed = made.matched + settled
    whole = max(made.billed + max(spent - made.counted, ZERO), confirmed)
    return max(confirmed / whole, ZERO) if whole > 0 else ZERO


def settled_by(made: Sequence[Made]) -> dict[int, Decimal]:
    """What was billed on lines that count as billed by now, by reconciliation. Two queries."""
    accepted = AcceptedLine.objects.filter(
        account=OuterRef("reconciliation__account"),
        starts_at__lt=OuterRef("ends_at"),
        ends_at__gt=OuterRef("starts_at"),
    )
    rows = ReconciliationLine.objects.filter(Exists(accepted), reconciliation__in=made).exclude(status=Status.MATCHED)
    lines = list(rows.select_related("reconciliation"))
    done = accepted_of(lines)
    found: dict[int, Decimal] = defaultdict(Decimal)
    for row in lines:
        if done.get(spot_of(row)) and not outstanding(row, done[spot_of(row)]):
            found[row.reconciliation_id] += row.billed
    return found


def newest_bills(made: Iterable[Made]) -> dict[int, Bill]:
    accounts = {one.account_id for one in made}
    rows = Bill.objects.filter(account__in=accounts, state="current").order_by("account_id", "-imported_at")
    return {bill.account_id: bill for bill in rows.distinct("account_id")}
