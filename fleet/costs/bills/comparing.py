"""Compares a month of an account's bills with its ledger, and keeps the result: pages and budgets read it in a query or two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.db import transaction

from fleet.costs.bills.adjusting import accepted_of, spot_of, take_back_outdated
from fleet.costs.bills.billed import billed_of, lines_near, mostly_in
from fleet.costs.bills.counted import Convert, tally
from fleet.costs.bills.matching import STEP, ZERO, Line, Status
from fleet.costs.bills.models import Bill, BillLine, Reconciliation, ReconciliationLine
from fleet.costs.bills.reasons import Terms, reconcile
from fleet.costs.ledger.charges import next_month
from fleet.costs.spend.converting import rates_into
from fleet.inventory.adapters import adapter_class
from fleet.inventory.models import ProviderAccount
from fleet.providers.errors import Invalid

BATCH = 2_000


def month_span(month: date) -> tuple[datetime, datetime]:
    """The month by UTC, which is most providers' clock."""
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    return start, next_month(start)


def compare_month(*, account: ProviderAccount, month: date, now: datetime) -> list[Reconciliation]:
    """One for each currency that was billed; none where no bill has a line of this month. Replaces what was compared before."""
    start, end = month_span(month)
    near = lines_near(account, start, end)
    judged = (
        judge(account, near, start, end, now)
        if any(mostly_in(line.starts_at, line.ends_at, start, end) for line in near)
        else []
    )
    by_currency: dict[str, list[Line]] = defaultdict(list)
    for line in judged:
        by_currency[line.key.currency].append(line)
    with transaction.atomic():
        ProviderAccount.objects.select_for_update().only("pk").get(pk=account.pk)
        Reconciliation.objects.filter(account=account, month=start.date()).delete()
        made = [keep(account, start.date(), currency, found, now) for currency, found in sorted(by_currency.items())]
        take_back_outdated(account=account, start=start, end=end, now=now)
        return made


def judge(account: ProviderAccount, near: list[BillLine], start: datetime, end: datetime, now: datetime) -> list[Line]:
    """Of the month as far as bills have come: what they cannot have yet is missing nowhere.

    `near`: also lines that lie mostly in another month: what they are for is compared there, and is missing nowhere here.
    """
    lines = [line for line in near if mostly_in(line.starts_at, line.ends_at, start, end)]
    until = min(end, covered_until(account, lines), now)
    first, last = min(start, *(line.starts_at for line in near)), max(until, *(line.ends_at for line in near))
    convert = converter(account, lines, first, last)
    found = tally(account=account, start=first, end=min(last, now), convert=convert)
    judged = reconcile(found.counted, map(billed_of, near), terms_of(account, start, until), doubts=found.doubts)
    # What was counted before the month and after what is billed is of other comparisons.
    return [
        line
        for line in judged
        if (mostly_in(line.start, line.end, start, end) if line.billed else start <= line.start and line.end <= until)
    ]


def covered_until(account: ProviderAccount, lines: list[BillLine]) -> datetime:
    last = Bill.objects.filter(account=account, state="current").order_by("-ends_at").values_list("ends_at", flat=True)
    return max([*last[:1], *(line.ends_at for line in lines)])


def terms_of(account: ProviderAccount, start: datetime, end: datetime) -> Terms:
    try:
        semantics = adapter_class(account.kind).semantics
    except Invalid:
        return Terms(start, end)
    return Terms(start, end, semantics.quantum_seconds, semantics.minimum_seconds)


def converter(account: ProviderAccount, lines: list[BillLine], first: datetime, last: datetime) -> Convert:
    """Into the currency of the bill, where it has one alone and there is a rate."""
    currencies = {line.currency for line in lines}
    if len(currencies) != 1:
        return lambda amount, currency, _at: (amount, currency)
    (into,) = currencies
    stretches = rates_into(
        team_id=account.team_id, currency=into, start=first.date(), end=last.date() + timedelta(days=1)
    )

    def convert(amount: Decimal, currency: str, at: datetime) -> tuple[Decimal, str]:
        day = at.date()
        known = (one for one in stretches if one.currency == currency and one.since <= day < one.until)
        found = None if currency == into else next(known, None)
        return (amount * found.factor, into) if found else (amount, currency)

    return convert


def keep(account: ProviderAccount, month: date, currency: str, lines: list[Line], now: datetime) -> Reconciliation:
    matched = [line for line in lines if line.status is Status.MATCHED]
    counted, billed = total(line.counted_amount for line in lines), total(line.billed_amount for line in lines)
    explained = total(line.explained for line in lines)
    made = Reconciliation.objects.create(
        account=account,
        month=month,
        currency=currency,
        counted=counted,
        billed=billed,
        explained=explained,
        left=billed - counted - explained,
        matched=total(line.billed_amount for line in matched),
        matched_lines=len(matched),
        made_at=now,
    )
    rows = [row_of(made, line) for line in lines]
    done = accepted_of(rows)
    # What matches now and was corrected before is off by the correction.
    kept = [row for row in rows if row.status != Status.MATCHED or done.get(spot_of(row))]
    ReconciliationLine.objects.bulk_create(kept, batch_size=BATCH)
    return made


def total(amounts: Iterable[Decimal]) -> Decimal:
    """To the places that a row keeps, so that its sums hold to the last one."""
    return sum(map(stored, amounts), ZERO)


def stored(amount: Decimal) -> Decimal:
    return amount.quantize(STEP)


def row_of(made: Reconciliation, line: Line) -> ReconciliationLine:
    counted, billed = stored(line.counted_amount), stored(line.billed_amount)
    reasons = list(reasons_of(line))
    return ReconciliationLine(
        reconciliation=made,
        instance_id=line.key.machine or None,
        name=line.key.name,
        meter=line.key.meter,
        starts_at=line.start,
        ends_at=line.end,
        status=line.status,
        counted=counted,
        billed=billed,
        left=billed - counted - total(Decimal(reason["amount"]) for reason in reasons),
        reasons=reasons,
    )


def reasons_of(line: Line) -> Iterator[dict[str, str]]:
    for reason in line.reasons:
        yield {"kind": reason.kind.value, "amount": f"{stored(reason.amount):f}", **reason.evidence}
