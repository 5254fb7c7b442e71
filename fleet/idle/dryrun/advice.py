"""The window that a team's own history speaks for, and what it would have done on days and machines that it was not learned from. Pure.

Learned from the earlier seven tenths of the days, with smoothed counts and a reserve (backtest.recommend); tried on the rest. What loses there
is not recommended, and not to stop is an advice too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from fleet.idle.backtest.outcomes import WINDOWS_MINUTES, Outcome
from fleet.idle.backtest.recommend import recommend_window
from fleet.idle.backtest.report import interval_of
from fleet.idle.dryrun.costs import WrongStop
from fleet.idle.dryrun.quiet import HOUR, History, Quiet
from fleet.idle.dryrun.simulate import Judged, Terms, due, judged

LEARNED_SHARE = 0.7
# On less, the days to learn from and those to try on say more of their weekdays than of the machines.
FEWEST_DAYS = 7
# Half of fewer machines are no group.
FEWEST_MACHINES = 4


class Why(StrEnum):
    """Why it is better not to stop, "" where it is not."""

    FEW_DAYS = "few_days"
    NO_GAIN = "no_gain"
    LOST_DAYS = "lost_days"
    LOST_MACHINES = "lost_machines"


@dataclass(frozen=True, slots=True)
class Tried:
    """What stops after one window come to, in GPU-hours."""

    stops: int = 0
    wrong: int = 0
    back: float = 0.0
    harm: float = 0.0

    @property
    def net(self) -> float:
        return self.back - self.harm

    def __add__(self, other: Tried) -> Tried:
        return Tried(self.stops + other.stops, self.wrong + other.wrong, self.back + other.back, self.harm + other.harm)


@dataclass(frozen=True, slots=True)
class OwnWindow:
    """A machine whose own window did better than its group's on both halves of the unseen days; nets on all of them."""

    instance_id: int
    minutes: int
    net: float
    group_net: float


@dataclass(frozen=True, slots=True)
class Advice:
    """`minutes` None: better not to stop, `why`. `best`: what was learned, also where the unseen days spoke against it.

    `unseen`, `interval` (90 %, machines and days drawn anew) and `idle` GPU-hours are of the days that it did not learn from; `machines`
    of those that it did not learn from, None: too few to tell.
    """

    minutes: int | None
    why: Why | None = None
    best: int | None = None
    learned_days: int = 0
    unseen_days: int = 0
    unseen: Tried = Tried()
    idle: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    machines: Tried | None = None
    own: tuple[OwnWindow, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Lesson:
    """All that stays the same while windows are tried: `terms` give grace and office hours."""

    terms: Terms
    cost: WrongStop

    def tried(self, histories: Iterable[History], minutes: int | None) -> Tried:
        return Tried() if minutes is None else self.tried_each(histories, (minutes,))[minutes]

    def tried_each(self, histories: Iterable[History], windows: Sequence[int]) -> dict[int, Tried]:
        """`windows` ascend: what one of them does not stop, no longer one does."""
        terms = [(minutes, replace(self.terms, window=timedelta(minutes=minutes))) for minutes in windows]
        sums = {minutes: [0, 0, 0.0, 0.0] for minutes in windows}
        for history in histories:
            harm = self.cost.of(history.gpus)
            for quiet in history.quiet:
                for minutes, one in terms:
                    at, _told = due(quiet, one)
                    if at is None:
                        break
                    self._add(sums[minutes], history, quiet, at, harm)
        return {minutes: Tried(int(found[0]), int(found[1]), *found[2:]) for minutes, found in sums.items()}

    @staticmethod
    def _add(found: list[float], history: History, quiet: Quiet, at: datetime, harm: float) -> None:
        off = quiet.end - at
        wrong = judged(quiet.ending, off) is Judged.WRONG
        found[0] += 1
        found[1] += wrong
        found[2] += off / HOUR * history.gpus
        found[3] += harm * wrong

    def learned(self, histories: Sequence[History]) -> int | None:
        """Reckoned in machines, not in GPUs: eight GPUs that stop together are one piece of luck, not eight."""
        gpus = sum(history.gpus for history in histories) / len(histories) if histories else 0.0
        cost = self.cost.of(gpus)
        if not gpus:
            return None
        tried = self.tried_each(histories, WINDOWS_MINUTES)
        recorded = {minutes: self._recorded(one, gpus, cost) for minutes, one in tried.items()}
        return recommend_window(recorded, wrong_stop_cost=cost / gpus)

    @staticmethod
    def _recorded(tried: Tried, gpus: float, cost: float) -> Outcome:
        return Outcome(tried.back / gpus, tried.stops, tried.harm / cost if cost else tried.wrong)


def advise(histories: Sequence[History], lesson: Lesson) -> Advice:
    days = sorted({day for history in histories for day in history.days})
    if len(days) < FEWEST_DAYS:
        return Advice(None, Why.FEW_DAYS, learned_days=len(days))
    learned, unseen = split_days(days)
    known, new = on_days(histories, learned), on_days(histories, unseen)
    best = lesson.learned(known)
    found = Advice(
        minutes=best,
        best=best,
        learned_days=len(learned),
        unseen_days=len(unseen),
        unseen=lesson.tried(new, best),
        idle=idle_hours(new),
        interval=interval(new, unseen, lesson, best),
        machines=on_other_machines(known, lesson),
    )
    why = against(found)
    if why is not None:
        return replace(found, minutes=None, why=why)
    return replace(found, own=own_windows(histories, learned, unseen, lesson, best))


def against(found: Advice) -> Why | None:
    if found.best is None:
        return Why.NO_GAIN
    if found.unseen.net < 0:
        return Why.LOST_DAYS
    return Why.LOST_MACHINES if found.machines is not None and found.machines.net < 0 else None


def split_days(days: Sequence[date]) -> tuple[list[date], list[date]]:
    """The earlier ones to learn from, the later ones to try on."""
    count = round(len(days) * LEARNED_SHARE)
    return list(days[:count]), list(days[count:])


def on_days(histories: Iterable[History], days: Collection[date]) -> list[History]:
    """A quiet time is of the day on which it began, in UTC."""
    wanted = frozenset(days)
    return [
        replace(one, quiet=tuple(quiet for quiet in one.quiet if quiet.start.astimezone(UTC).date() in wanted))
        for one in histories
    ]


def idle_hours(histories: Iterable[History]) -> float:
    return sum(quiet.length / HOUR * one.gpus for one in histories for quiet in one.quiet)


def on_other_machines(histories: Sequence[History], lesson: Lesson) -> Tried | None:
    """Every other machine by what the ones between them teach, and the other way round."""
    one, other = histories[::2], histories[1::2]
    if len(histories) < FEWEST_MACHINES:
        return None
    return lesson.tried(other, lesson.learned(one)) + lesson.tried(one, lesson.learned(other))


def interval(
    histories: Sequence[History], days: Iterable[date], lesson: Lesson, minutes: int | None
) -> tuple[float, float]:
    """Of the net. Quiet times of one machine on one day resemble each other, and so do not count as many."""
    nets = [lesson.tried(on_days([one], [day]), minutes).net for one in histories for day in days]
    return interval_of(nets)


def own_windows(
    histories: Sequence[History], learned: Sequence[date], unseen: Sequence[date], lesson: Lesson, group: int | None
) -> tuple[OwnWindow, ...]:
    """Among many machines some do better by luck: only who does so twice, on each half of the unseen days, keeps a window of its own."""
    halves = unseen[::2], unseen[1::2]
    found = []
    for history in histories:
        own = lesson.learned(on_days([history], learned))
        if own in {None, group}:
            continue
        nets = [net_on(history, half, lesson, own) for half in halves]
        theirs = [net_on(history, half, lesson, group) for half in halves]
        if own and all(net > other for net, other in zip(nets, theirs, strict=True)):
            found.append(OwnWindow(history.instance_id, own, sum(nets), sum(theirs)))
    return tuple(found)


def net_on(history: History, days: Collection[date], lesson: Lesson, minutes: int | None) -> float:
    return lesson.tried(on_days([history], days), minutes).net


def by_machine(own: Iterable[OwnWindow]) -> Mapping[int, int]:
    """Minutes by machine."""
    return {one.instance_id: one.minutes for one in own}
