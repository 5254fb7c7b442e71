"""Money as it flows: rates that begin and end, added up over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.ledger.charges import HOUR_SECONDS, next_month
from fleet.costs.ledger.intervals import Unit

EXACT = Decimal("1e-14")


@dataclass(frozen=True, slots=True)
class Change:
    """From `at` on, `rate` more is charged for each `unit` (or less, where it is negative)."""

    at: datetime
    unit: Unit
    rate: Decimal
    part: PartKind


@dataclass(frozen=True, slots=True)
class Lump:
    at: datetime
    amount: Decimal
    part: PartKind


def clock(unit: Unit, moment: datetime, since: datetime) -> Decimal:
    """How many units lie between: hours, or months of UTC by the seconds that each has."""
    if unit is Unit.HOUR:
        return seconds_between(since, moment) / HOUR_SECONDS
    return months_at(moment) - months_at(since)


def seconds_between(start: datetime, end: datetime) -> Decimal:
    span = end.astimezone(UTC) - start.astimezone(UTC)
    return Decimal(span.days * 86_400 + span.seconds) + Decimal(span.microseconds) / 1_000_000


def months_at(moment: datetime) -> Decimal:
    """Months since the year 0, the part of the present one by its seconds."""
    utc = moment.astimezone(UTC)
    first = utc.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    whole = utc.year * 12 + utc.month - 1
    return whole + seconds_between(first, utc) / seconds_between(first, next_month(first))


def added_up(
    changes: Iterable[Change], lumps: Iterable[Lump], *, since: datetime, at: Sequence[datetime]
) -> dict[PartKind, list[Decimal]]:
    """For each part what comes to between `since` and each of the moments, which ascend. Whatever began before counts from `since`."""
    sums = {part: [Decimal(0)] * len(at) for part in PartKind}
    for (part, unit), rows in _by_part(changes).items():
        for number, more in enumerate(_integrals(rows, unit, since, at)):
            sums[part][number] += more
    for lump in lumps:
        for number, moment in enumerate(at):
            if max(lump.at, since) < moment:
                sums[lump.part][number] += lump.amount
    return {part: [one.quantize(EXACT) for one in row] for part, row in sums.items() if any(row)}


def _by_part(changes: Iterable[Change]) -> dict[tuple[PartKind, Unit], list[Change]]:
    found: dict[tuple[PartKind, Unit], list[Change]] = {}
    for change in changes:
        unit = Unit.HOUR if change.unit is Unit.HOUR else Unit.MONTH
        found.setdefault((change.part, unit), []).append(change)
    return found


def _integrals(rows: list[Change], unit: Unit, since: datetime, at: Sequence[datetime]) -> list[Decimal]:
    """Sum of rate x (clock(moment) - clock(change)), in one pass: the sums of the rates and of rate x clock say it."""
    rows.sort(key=lambda change: change.at)
    found, rates, moments, number = [], Decimal(0), Decimal(0), 0
    for moment in at:
        while number < len(rows) and rows[number].at < moment:
            change = rows[number]
            rates += change.rate
            if change.at > since:
                moments += change.rate * clock(unit, change.at, since)
            number += 1
        found.append(rates * clock(unit, moment, since) - moments)
    return found
