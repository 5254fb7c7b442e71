"""Exchange rates over a span of days: the newest rate of each day, as factors that a query can multiply with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, localcontext

from django.db.models import Exists, OuterRef, Q

from fleet.costs.spend.figures import UsedRate
from fleet.costs.spend.models import ExchangeRate

ONE_DAY = timedelta(days=1)
# An inverse has no end of digits. With these many, what a sum in it is off by lies far below what any currency pays out.
INVERSE_DIGITS = Decimal("1e-24")


@dataclass(frozen=True, slots=True)
class Stretch:
    """On the days [since, until) one `used.currency` or, where the rate is the other way round, one `used.into` is `factor` of what was asked for."""

    currency: str
    since: date
    until: date
    factor: Decimal
    used: UsedRate

    def days(self) -> Iterator[date]:
        return (self.since + number * ONE_DAY for number in range((self.until - self.since).days))


def rates_into(*, team_id: int, currency: str, start: date, end: date) -> list[Stretch]:
    """Of every currency that has a rate to this one or from it, within [start, end): by currency, then by day. One query."""
    newer = ExchangeRate.objects.filter(
        team=team_id, currency=OuterRef("currency"), into=OuterRef("into"), day__gt=OuterRef("day"), day__lte=start
    )
    found = (
        ExchangeRate.objects.filter(Q(into=currency) | Q(currency=currency), ~Exists(newer), team=team_id, day__lt=end)
        .order_by("day")
        .values_list("currency", "into", "day", "rate", "source")
    )
    rates: dict[str, list[UsedRate]] = {}
    for row in found:
        one = UsedRate(*row)
        rates.setdefault(one.into if one.currency == currency else one.currency, []).append(one)
    return [one for other in sorted(rates) for one in stretches(other, rates[other], start=start, end=end)]


def stretches(other: str, rates: Sequence[UsedRate], *, start: date, end: date) -> Iterator[Stretch]:
    """`rates`: of this currency and the one asked for, either way round, the oldest first.

    A rate the other way round counts until there is one that is not.
    """
    straight = [one for one in rates if one.currency == other]
    turned = [one for one in rates if one.currency != other]
    first = straight[0].day if straight else end
    yield from _one_after_the_other(other, [one for one in turned if one.day < first], start=start, end=min(first, end))
    yield from _one_after_the_other(other, straight, start=start, end=end)


def _one_after_the_other(other: str, rates: Sequence[UsedRate], *, start: date, end: date) -> Iterator[Stretch]:
    ends = [one.day for one in rates[1:]] + [end]
    for one, until in zip(rates, ends, strict=False):
        since = max(one.day, start)
        if since < min(until, end):
            yield Stretch(other, since, min(until, end), factor_of(one, other), one)


def factor_of(rate: UsedRate, other: str) -> Decimal:
    if rate.currency == other:
        return rate.rate
    with localcontext(prec=60):
        return (1 / rate.rate).quantize(INVERSE_DIGITS)


def split_months(found: Iterable[Stretch]) -> set[tuple[str, date]]:
    """(currency, month) in which a rate begins after the month's first day: what is summed over them cannot be converted at once."""
    return {(one.currency, one.since.replace(day=1)) for one in found if one.since.day > 1}
