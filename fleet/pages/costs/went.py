"""Where the money went: a month by day and by one dimension, beside the same days of the month before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from fleet.costs.bills.shown import confirmed_by_bills
from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Spend, Sum, Where, spend
from fleet.pages.costs.asked import FILTERS, NEAR, NOBODY, SPLITS, Asked
from fleet.pages.costs.kept import asked_once, days_before, month_of, same_days_before
from fleet.pages.costs.names import names_of
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team

# More layers than these cannot be told apart; the rest is one.
MOST_LAYERS = 6
OTHERS = "others"
MOST_ROWS = 200
HOUR_SECONDS = 3600
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the split. `before`: the same days of the month before. `useful_hour`: what an hour of a working GPU came to."""

    name: str
    sum: Sum
    before: Decimal | None
    share: int
    query: str = ""
    shade: str = ""
    state: GpuState | None = None

    @property
    def change(self) -> int | None:
        """In percent; None where there was nothing to compare with."""
        return round(100 * (self.sum.total - self.before) / self.before) if self.before else None

    @property
    def wasted_share(self) -> int:
        return round(100 * self.sum.bought_nothing / self.sum.total) if self.sum.total > 0 else 0

    @property
    def useful_hour(self) -> Decimal | None:
        return useful_hour(self.sum)


def useful_hour(found: Sum) -> Decimal | None:
    seconds = found.gpu_seconds.get(GpuState.WORKING, 0.0)
    return found.total * HOUR_SECONDS / Decimal(round(seconds)) if seconds >= 1 else None


def where_it_went(request: TeamRequest, month: Month) -> Context:
    asked = Asked.of(request.GET, month)
    by_day = machines_by_day(request, asked) if asked.by is By.MACHINE else days_of(request.team, asked)
    sums = single(month_of(request, month)) if asked.by is By.MACHINE else folded(by_day)
    rows = rows_of(request, asked, by_day, sums)
    return {
        "asked": asked,
        "month": month,
        "spend": by_day,
        "rows": rows,
        "left_out": len(sums) - len(rows),
        "unpriced_hours": by_day.all.unpriced_seconds / HOUR_SECONDS,
        "total": total_row(request, asked, by_day),
        "chart": {"went-data": chart_of(rows, by_day, month)} if rows else {},
        "near": [(SPLITS[one], asked.query(by=one), one == asked.by) for one in NEAR],
        "far": [(one.value, word) for one, word in SPLITS.items()],
        "confirmed": "" if asked.chosen else confirmed_words(request.team, month),
        "filters": chips(request.team, asked),
        "split_word": asked.label if asked.by is By.LABEL else SPLITS[asked.by],
    }


def days_of(team: Team, asked: Asked, *, where: Where | None = None) -> Spend:
    return spend(
        team=team,
        start=asked.month.first,
        end=asked.month.next_first,
        by=(By.DAY, asked.by),
        where=where or asked.where,
        label=asked.label,
    )


def machines_by_day(request: TeamRequest, asked: Asked) -> Spend:
    """By the day only those that are drawn, and the others as one: thousands of machines have a day each, every day."""
    found = month_of(request, asked.month)
    drawn = [key for (key,) in list(found.rows)[:MOST_LAYERS]]
    some = days_of(request.team, asked, where=only(asked.where, drawn))
    all_days = spend(
        team=request.team, start=asked.month.first, end=asked.month.next_first, by=(By.DAY,), where=asked.where
    )
    rows = dict(some.rows)
    for (day,), whole in all_days.rows.items():
        taken = sum((one.total for key, one in some.rows.items() if key[0] == day), NOTHING)
        if whole.total != taken:
            rows[day, OTHERS] = Sum({}, whole.total - taken, {}, {})
    return Spend(found.currency, (By.DAY, By.MACHINE), rows, found.all, found.rates)


def only(where: Where, machines: Sequence[object]) -> Where:
    """Of these, which `where` lets through. None of them is not all of them."""
    return replace(where, instances=tuple(one for one in machines if one is None or isinstance(one, int)) or (0,))


def single(found: Spend) -> dict[object, Sum]:
    return {value: one for (value,), one in found.rows.items()}


def confirmed_words(team: Team, month: Month) -> str:
    """How much of the whole month bills confirm; empty where none was read."""
    found = confirmed_by_bills(team=team, start=month.first, end=month.next_first)
    if not found.accounts or found.share is None:
        return ""
    names = sorted({one.account.name for one in found.accounts})
    return _("Bills bear out %(percent)s%% of it (%(accounts)s).") % {
        "percent": round(100 * found.share),
        "accounts": ", ".join(names),
    }


def rows_of(request: TeamRequest, asked: Asked, by_day: Spend, sums: Mapping[object, Sum]) -> list[Row]:
    ordered = sorted(sums.items(), key=lambda item: item[1].total, reverse=True)[:MOST_ROWS]
    shown = [value for value, _sum in ordered]
    earlier = machines_before(request, asked, shown) if asked.by is By.MACHINE else days_before(request, asked)
    names = names_of(request.team, asked.by, shown)
    return [
        Row(
            name=names[value],
            sum=found,
            before=earlier.rows[(value,)].total if (value,) in earlier.rows else None,
            share=round(100 * found.total / by_day.all.total) if by_day.all.total > 0 else 0,
            query=asked.query(add=(asked.by, NOBODY if value is None else str(value)))
            if may_filter(asked, value)
            else "",
            shade=f"{max(0.08, 0.64 - 0.12 * number):.2f}",
            state=GpuState(str(value)) if asked.by is By.STATE else None,
        )
        for number, (value, found) in enumerate(ordered)
    ]


def machines_before(request: TeamRequest, asked: Asked, machines: Sequence[object]) -> Spend:
    start, end = same_days_before(asked.month)
    return asked_once(request, start=start, end=end, by=(By.MACHINE,), where=only(asked.where, machines))


def may_filter(asked: Asked, value: object) -> bool:
    return asked.by in FILTERS and not (value is None and asked.by not in {By.PROJECT, By.OWNER})


def folded(by_day: Spend) -> dict[object, Sum]:
    """The days of each value together."""
    found: dict[object, list[Sum]] = {}
    for (_day, value), one in by_day.rows.items():
        found.setdefault(value, []).append(one)
    return {value: added(parts) for value, parts in found.items()}


def added(parts: Sequence[Sum]) -> Sum:
    return Sum(
        amounts=_merged([one.amounts for one in parts]),
        total=sum((one.total for one in parts), NOTHING),
        states=_merged([one.states for one in parts]),
        gpu_seconds={
            state: sum(one.gpu_seconds.get(state, 0.0) for one in parts)
            for state in GpuState
            if any(one.gpu_seconds.get(state) for one in parts)
        },
        unpriced_seconds=sum(one.unpriced_seconds for one in parts),
        unconverted=_merged([one.unconverted for one in parts]),
    )


def _merged(parts: Sequence[Mapping[Any, Decimal]]) -> dict[Any, Decimal]:
    found: dict[Any, Decimal] = {}
    for part in parts:
        for key, amount in part.items():
            found[key] = found.get(key, NOTHING) + amount
    return found


def total_row(request: TeamRequest, asked: Asked, by_day: Spend) -> Row:
    earlier = days_before(request, asked).all.total
    return Row(name=_("All"), sum=by_day.all, before=earlier, share=100)


def chart_of(rows: Sequence[Row], by_day: Spend, month: Month) -> dict[str, Any]:
    """Money by day as stacked layers, the largest at the bottom; what has no layer of its own is one more."""
    days = [month.first + timedelta(days=number) for number in range((month.end - month.first).days)]
    order = _values_by_size(by_day)
    shown, rest = order[:MOST_LAYERS], order[MOST_LAYERS:]
    layers = [_layer(row, days, [value], by_day) for row, value in zip(rows, shown, strict=False)]
    if rest:
        layers.append({"name": _("others"), "y": _heights(days, rest, by_day)})
    return {"kind": "money", "days": [day.isoformat() for day in days], "currency": by_day.currency, "traces": layers}


def _values_by_size(by_day: Spend) -> list[object]:
    """What stands for all others comes last, however much it is."""
    sums = folded(by_day)
    return sorted(sums, key=lambda value: (value != OTHERS, sums[value].total), reverse=True)


def _layer(row: Row, days: Sequence[date], values: Sequence[object], by_day: Spend) -> dict[str, Any]:
    state = {"state": row.state.value} if row.state else {}
    return {"name": row.name, **state, "y": _heights(days, values, by_day)}


def _heights(days: Sequence[date], values: Sequence[object], by_day: Spend) -> list[float]:
    """Floats for the drawing alone."""
    sums = ((by_day.rows.get((day, value)) for value in values) for day in days)
    return [round(float(sum((one.total for one in column if one), NOTHING)), 2) for column in sums]


def chips(team: Team, asked: Asked) -> list[tuple[str, str, str]]:
    """(what, its name, the address without it) of each filter."""
    found = []
    for dimension, value in asked.chosen.items():
        key: object = value if dimension is By.METER else None if value == NOBODY else int(value)
        name = names_of(team, dimension, [key])[key]
        found.append((str(SPLITS[dimension]), name, asked.query(drop=dimension)))
    return found
