"""The section of the costs page that says whether buying would win, with a chart and what the answer hangs on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from fleet.costs.month import Month
from fleet.costs.rightsizing.owning import RentOrBuy, planner_query, rent_or_buy
from fleet.costs.rightsizing.use import use_of
from fleet.formats import sign_of, whole_money_text
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from planner.web.rentorbuy import TABLE_CURRENCY
from planner.web.words.terms import BANDS

PARAMETER = "own"
# Break-evens beyond are drawn at the edge: no month has that many hours.
FARTHEST = Decimal("1.5")
STEP = Decimal("0.2")


@dataclass(frozen=True, slots=True)
class Bar:
    """A range of break-evens; `start` and `end` in percent of the scale, as CSS takes them."""

    name: str
    start: str
    end: str
    words: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    low: Decimal
    high: Decimal

    def at(self, share: Decimal) -> str:
        inside = min(max(share, self.low), self.high)
        return f"{100 * (inside - self.low) / (self.high - self.low):.1f}"


def owning_panel(request: TeamRequest, month: Month) -> Context | None:
    """Of the 30 days before today; nothing on the page of a month that is over, or where no GPU's purchase price is known."""
    if not month.is_current:
        return None
    used = use_of(request.team, today=month.today, currency=TABLE_CURRENCY)
    known = {one.use.gpu_model: one for one in map(rent_or_buy, used) if one is not None}
    if not known:
        return None
    asked = request.GET.get(PARAMETER, "")
    found = known.get(asked) or next(iter(known.values()))
    return shown(found) | {"models": [name for name in known if name != found.use.gpu_model]}


def shown(found: RentOrBuy) -> Context:
    scale = scale_of(found)
    least, most = found.week_range
    return {
        "found": found,
        "currency": TABLE_CURRENCY,
        "headline": headline(found),
        "measured": percent(found.use.utilization),
        "weeks": span_words(least, most),
        "own_low": found.own_range[0],
        "own_high": found.own_range[1],
        "bars": bars_of(found, scale),
        "measured_at": scale.at(found.use.utilization),
        "ticks": [(scale.at(share), f"{percent(share)}%") for share in ticks(scale)],
        "chart": {"owning-data": chart(found)},
        "query": planner_query(found, currency=TABLE_CURRENCY),
    }


def headline(found: RentOrBuy) -> str:
    even, used = found.found.break_even, found.use.utilization
    told = {"even": percent(found.ratio), "used": percent(used)}
    if even is None:
        return _("Rent on: at this rent buying wins at no use")
    if used > even:
        text = _("Buying may win: from %(even)d%% use on, yours is %(used)d%%")
        return (text if found.overlaps else _("Buying wins: from %(even)d%% use on, yours is %(used)d%%")) % told
    text = _("Rent on, for now: buying wins above %(even)d%% use")
    return (text if found.overlaps else _("Rent on: buying wins above %(even)d%% use")) % told


def bars_of(found: RentOrBuy, scale: Scale) -> list[Bar]:
    rows = [
        _bar(str(BANDS[band.key]), band.ratio_at_low, band.ratio_at_high, scale) for band in found.found.sensitivity
    ]
    return [*rows, _bar(_("All together"), found.low, found.high, scale, whole=True)]


def _bar(name: str, one: Decimal, other: Decimal, scale: Scale, *, whole: bool = False) -> Bar:
    low, high = sorted((one, other))
    return Bar(name, scale.at(low), scale.at(high), span_words(low, high), whole)


def span_words(low: Decimal, high: Decimal) -> str:
    if low > 1:
        return _("never")
    if high > 1:
        return _("%(low)d%% to never") % {"low": percent(low)}
    return _("%(low)d to %(high)d%%") % {"low": percent(low), "high": percent(high)}


def scale_of(found: RentOrBuy) -> Scale:
    shares = [found.low, found.high, found.use.utilization]
    shares += [ratio for band in found.found.sensitivity for ratio in (band.ratio_at_low, band.ratio_at_high)]
    low = min(shares) // STEP * STEP
    high = max(Decimal(1), -(-max(shares) // STEP) * STEP)
    return Scale(min(low, Decimal(1) - STEP), min(high, FARTHEST))


def ticks(scale: Scale) -> list[Decimal]:
    return [scale.low, (scale.low + scale.high) / 2, scale.high]


def percent(share: Decimal) -> int:
    return round(100 * share)


def chart(found: RentOrBuy) -> dict[str, Any]:
    """Plain numbers: money a month against the share of hours that the GPUs work, in percent."""
    least, most = found.week_range
    low, high = found.own_range
    used = float(found.use.utilization) * 100
    return {
        "sign": sign_of(TABLE_CURRENCY),
        "rent": float(found.rent_always),
        "own": float(found.own),
        "own_low": float(low),
        "own_high": float(high),
        "used": used,
        "used_cost": float(found.rent_by_the_hour),
        "week_low": float(least) * 100,
        "week_high": float(most) * 100,
        "words": {
            "rent": _("rent"),
            "buy": _("buy %(money)s") % {"money": whole_money_text(found.own, TABLE_CURRENCY)},
            "measured": _("measured %(percent)d%%") % {"percent": round(used)},
            "axis": _("hours of the month in which the GPUs work"),
        },
    }
