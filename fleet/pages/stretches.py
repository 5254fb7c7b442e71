"""A machine's past as stretches of one state, with what each cost: the part of its timeline that says how it was used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Q
from django.utils.translation import gettext as _

from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.charges import Rules, amount_of, months_between
from fleet.costs.ledger.intervals import Price, Unit
from fleet.formats import amounts_text, duration_text
from fleet.inventory.models import Instance
from fleet.pages.history import kept_history
from fleet.pages.machine import MachineView
from fleet.panels import Context, TimelineEntry
from fleet.states import GpuState, worst
from fleet.teams.access import TeamRequest
from fleet.telemetry.latest import machines_now
from fleet.words import state_word

POINTS = 145
KEPT_SECONDS = 60
# A shorter change, at the resolution of the span, is part of what was before.
LEAST_BUCKETS = 2
ALL_BUT_ALL_PERCENT = 98
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """[start, end) in one state. `counts`: buckets of its GPUs by the state that each was in."""

    state: GpuState
    start: datetime
    end: datetime
    buckets: int
    counts: Counter[GpuState]

    @property
    def share(self) -> float:
        """Of its GPUs' time that was in the state that it is named by, 0-1."""
        return self.counts[self.state] / self.counts.total()

    def joined(self, later: Stretch) -> Stretch:
        """With the one that follows it; still named by its own state."""
        return replace(self, end=later.end, buckets=self.buckets + later.buckets, counts=self.counts + later.counts)


def stretches(
    starts: Sequence[datetime], width: timedelta, columns: Sequence[Sequence[GpuState | None]]
) -> list[Stretch]:
    """`columns`: one a bucket, the states of the GPUs in it; None of one that was not known yet."""
    found: list[Stretch] = []
    for start, column in zip(starts, columns, strict=True):
        counts = Counter(state for state in column if state is not None)
        if not counts:
            continue
        one = Stretch(state_of_most(counts), start, start + width, 1, counts)
        if found and found[-1].state is one.state and found[-1].end == start:
            found[-1] = found[-1].joined(one)
        else:
            found.append(one)
    return absorbed(found)


def state_of_most(counts: Counter[GpuState]) -> GpuState:
    """Over hours a machine is named by what most of its GPUs did; of as many by the worst."""
    most = max(counts.values())
    return worst([state for state, count in counts.items() if count == most])


def absorbed(found: Sequence[Stretch]) -> list[Stretch]:
    """What is too short to tell joins what it interrupts, and both sides of it become one."""
    kept: list[Stretch] = []
    for one in found:
        short = one.buckets < LEAST_BUCKETS and one is not found[-1]
        if kept and kept[-1].end == one.start and (short or kept[-1].state is one.state):
            kept[-1] = kept[-1].joined(one)
        else:
            kept.append(one)
    return kept


def told_states(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context | None:
    """One entry a stretch, at its beginning, with how long it lasted and what it cost. None of the whole team: its map says it."""
    if instance is None:
        return None
    view = view_of(request, instance, until)
    if not view.tiles:
        return None
    history = kept_history(
        machines=[view], until=until, span=until - since, max_points=POINTS, kept_seconds=KEPT_SECONDS
    )
    width = timedelta(seconds=history.bucket_seconds)
    columns = list(zip(*history.states.values(), strict=True))
    found = stretches(history.starts, width, columns)
    # The bucket that has just begun may have no reading yet.
    if found and found[-1].state is GpuState.UNKNOWN and until - found[-1].start < width:
        found.pop()
    rows = intervals_of(instance, since=since, until=until)
    return {"entries": [entry_of(one, rows, until) for one in found]}


def view_of(request: TeamRequest, instance: Instance, now: datetime) -> MachineView:
    """As of now: what a page has read of the machine already is not read again."""
    kept: MachineView | None = getattr(request, "_machine_view", None)
    if kept is not None and kept.instance.pk == instance.pk:
        return kept
    return MachineView(machines_now([instance], now=now)[0], now)


def entry_of(one: Stretch, rows: Sequence[LedgerInterval], until: datetime) -> TimelineEntry:
    end = min(one.end, until)
    lasted = duration_text((end - one.start).total_seconds())
    said = _("for %(time)s") if one.end < until else _("for %(time)s so far")
    parts = (said % {"time": lasted}, share_text(one.share), cost_text(rows, one.start, end))
    return TimelineEntry(
        at=one.start, text=state_word(one.state), detail=", ".join(filter(None, parts)), mark=one.state.value
    )


def share_text(share: float) -> str:
    """Empty where it is all but all of it."""
    percent = round(100 * share)
    return "" if percent >= ALL_BUT_ALL_PERCENT else _("%(percent)d%% of its GPUs' time") % {"percent": percent}


def intervals_of(instance: Instance, *, since: datetime, until: datetime) -> list[LedgerInterval]:
    rows = LedgerInterval.objects.filter(Q(meter__instance=instance), period__overlap=(since, until))
    return list(rows.exclude(unit__in=(Unit.NONE, Unit.ONCE)).select_related("meter"))


def cost_text(rows: Sequence[LedgerInterval], start: datetime, end: datetime) -> str:
    """What the ledger charges for that time; "" where it has nothing of it."""
    amounts, is_all = cost_within(rows, start, end)
    if not amounts:
        return "" if is_all else _("cost not known")
    text = amounts_text(amounts)
    return text if is_all else _("at least %(money)s") % {"money": text}


def cost_within(rows: Sequence[LedgerInterval], start: datetime, end: datetime) -> tuple[dict[str, Decimal], bool]:
    """By currency, and whether that is all: False where something was charged at a price that nobody told."""
    amounts: dict[str, Decimal] = {}
    is_all = True
    for row in rows:
        price = Price(Unit(row.unit), row.unit_price, row.quantity, row.currency)
        begin, stop = max(start, row.period.lower), min(end, row.period.upper or end)
        for month, part_start, part_end in months_between(begin, stop):
            amount = amount_of(price, round((part_end - part_start).total_seconds()), month, Rules())
            is_all = is_all and amount is not None
            if amount is not None:
                amounts[row.currency] = amounts.get(row.currency, NOTHING) + amount
    return amounts, is_all
