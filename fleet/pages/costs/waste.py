"""What bought nothing in a month: by state, and the machines that most of it went into."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Sum
from fleet.pages.costs.asked import Asked
from fleet.pages.costs.kept import days_before, month_of
from fleet.pages.costs.names import names_of
from fleet.pages.costs.went import HOUR_SECONDS, useful_hour
from fleet.panels import Context
from fleet.states import BUYS_NOTHING, GpuState
from fleet.teams.access import TeamRequest

MOST_MACHINES = 8
# A headline names as few machines as make up so much of it.
MOST_OF_IT = 60


@dataclass(frozen=True, slots=True)
class Part:
    """`width`: in percent of the longest bar."""

    state: GpuState
    amount: Decimal
    gpu_hours: float
    width: str


@dataclass(frozen=True, slots=True)
class Waster:
    """A machine, what it cost for nothing, and the state in which most of that went."""

    pk: int
    name: str
    amount: Decimal
    state: GpuState
    width: str


def bought_nothing(request: TeamRequest, month: Month) -> Context | None:
    found = month_of(request, month)
    if not found.all.total:
        return None
    wasted = found.all.bought_nothing
    before = days_before(request, Asked.of(request.GET, month)).all
    return {
        "month": month,
        "currency": found.currency,
        "wasted": wasted,
        "parts": parts_of(found.all, wasted),
        "share": percent(wasted, found.all.total),
        "share_before": percent(before.bought_nothing, before.total) if before.total > 0 else None,
        "unknown": found.all.states.get(GpuState.UNKNOWN, Decimal(0)),
        "stopped": found.all.states.get(GpuState.STOPPED, Decimal(0)),
        "useful_hour": useful_hour(found.all),
    }


def parts_of(found: Sum, wasted: Decimal) -> list[Part]:
    return [
        Part(
            state,
            found.states[state],
            found.gpu_seconds.get(state, 0.0) / HOUR_SECONDS,
            f"{100 * found.states[state] / wasted:.2f}",
        )
        for state in GpuState
        if state in BUYS_NOTHING and found.states.get(state)
    ]


def percent(part: Decimal, whole: Decimal) -> int:
    return round(100 * part / whole) if whole > 0 else 0


def top_wasters(request: TeamRequest, month: Month) -> Context | None:
    found = month_of(request, month)
    machines = [(key[0], one) for key, one in found.rows.items() if one.bought_nothing > 0 and isinstance(key[0], int)]
    if not machines:
        return None
    machines.sort(key=lambda item: item[1].bought_nothing, reverse=True)
    names = names_of(request.team, By.MACHINE, [pk for pk, _sum in machines[:MOST_MACHINES]])
    longest = machines[0][1].bought_nothing
    wasted = sum((one.bought_nothing for _pk, one in machines), Decimal(0))
    rest = machines[MOST_MACHINES:]
    rest_amount = sum((one.bought_nothing for _pk, one in rest), Decimal(0))
    few, few_share = headline([one.bought_nothing for _pk, one in machines], wasted)
    return {
        "month": month,
        "currency": found.currency,
        "wasters": [waster_of(pk, names[pk], one, longest) for pk, one in machines[:MOST_MACHINES]],
        "others": len(rest),
        "others_amount": rest_amount,
        "others_width": f"{min(Decimal(100), 100 * rest_amount / longest):.1f}",
        "few": few,
        "few_share": few_share,
    }


def waster_of(pk: int, name: str, found: Sum, longest: Decimal) -> Waster:
    state = max(BUYS_NOTHING, key=lambda one: found.states.get(one, Decimal(0)))
    return Waster(pk, name, found.bought_nothing, state, f"{100 * found.bought_nothing / longest:.1f}")


def headline(amounts: list[Decimal], whole: Decimal) -> tuple[int, int]:
    """How few of the largest make up most of it, and how many percent that is."""
    reached = Decimal(0)
    for count, amount in enumerate(amounts, start=1):
        reached += amount
        if percent(reached, whole) >= MOST_OF_IT:
            return count, percent(reached, whole)
    return len(amounts), 100
