"""From buckets to quiet times of a whole machine, each bucket judged as the watch judges. Pure.

A quiet time begins where the last use ended, or where what is known begins. It ends with the next use, with the machine off, or where nobody
can tell any more; what comes after that begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from fleet.idle.dryrun.evidence import BUCKET, COVERED_BUCKETS, Bucket, Context, Held, Known, Power, window_of
from fleet.idle.verdict.limits import Limits
from fleet.idle.verdict.verdict import Answer, IdleVerdict, judge

NONE = timedelta()
HOUR = timedelta(hours=1)
# An open session is somebody who may have forgotten it: it never proves that somebody worked.
NO_WORK = frozenset({"ssh_sessions"})
FORGOTTEN = "forgotten_session"


class Ending(StrEnum):
    RETURN = "return"
    OFF = "off"
    UNKNOWN = "unknown"
    # It goes on.
    NOW = "now"


@dataclass(frozen=True, slots=True)
class Quiet:
    """`because`: codes of what showed use where it ended with a return. Before `not_before` an open session kept it from being idle."""

    start: datetime
    end: datetime
    ending: Ending
    because: tuple[str, ...] = ()
    not_before: datetime | None = None

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class History:
    """One machine over the time looked at. `watched`: of which is known whether it was idle; `idle`: of which all of it was; `days` of UTC."""

    instance_id: int
    gpus: int
    quiet: tuple[Quiet, ...] = ()
    watched: timedelta = NONE
    idle: timedelta = NONE
    days: frozenset[date] = frozenset()
    holds: tuple[Held, ...] = ()

    @property
    def idle_gpu_hours(self) -> float:
        return self.idle / HOUR * self.gpus


@dataclass(slots=True)
class Fold:
    """One machine, bucket after bucket."""

    known: Known
    limits: Limits
    start: datetime | None = None
    is_quiet: bool = False
    reached: datetime | None = None
    active_at: datetime | None = None
    # Since when nothing but an open session shows use.
    session_from: datetime | None = None
    not_before: datetime | None = None
    power: int = -1
    change: int = -1
    coverage: deque[float] = field(default_factory=lambda: deque(maxlen=COVERED_BUCKETS))
    host_coverage: deque[float] = field(default_factory=lambda: deque(maxlen=COVERED_BUCKETS))
    watched: timedelta = NONE
    idle: timedelta = NONE
    days: set[date] = field(default_factory=set)

    def run(self, buckets: Iterable[Bucket], *, until: datetime) -> History:
        quiet = [*self._quiet(buckets), *self._end(until)]
        return History(
            self.known.instance_id,
            self.known.gpus,
            tuple(quiet),
            self.watched,
            self.idle,
            frozenset(self.days),
            tuple(self.known.holds),
        )

    def _quiet(self, buckets: Iterable[Bucket]) -> Iterator[Quiet]:
        for bucket in buckets:
            if self.reached is None:
                # Of a session that was open before the record began, nobody knows when it was used last.
                self.active_at = bucket.at
            elif bucket.at > self.reached:
                yield from self._silence(self.reached)
            verdict = judge(window_of(bucket, self.known, self._context(bucket)), self.limits)
            yield from self._judged(bucket.at, verdict)
            self.reached = bucket.at + BUCKET

    def _context(self, bucket: Bucket) -> Context:
        power = self._power(bucket.at + BUCKET)
        return Context(
            power=power,
            started_at=self._started(power, bucket.at + BUCKET),
            active_at=self.active_at,
            coverage=lately(self.coverage, bucket.coverage),
            host_coverage=lately(self.host_coverage, bucket.host_coverage or 0.0),
        )

    def _power(self, before: datetime) -> Power | None:
        powers = self.known.powers
        while self.power + 1 < len(powers) and powers[self.power + 1].since < before:
            self.power += 1
        return powers[self.power] if self.power >= 0 else None

    def _started(self, power: Power | None, before: datetime) -> datetime | None:
        changes = self.known.changes
        while self.change + 1 < len(changes) and changes[self.change + 1] < before:
            self.change += 1
        began = None if power is None else power.started_at
        changed = changes[self.change] if self.change >= 0 else began
        return began if began is None or changed is None else max(began, changed)

    def _judged(self, at: datetime, verdict: IdleVerdict) -> Iterator[Quiet]:
        if verdict.answer is Answer.IDLE:
            self._rests(at, session_is_open=FORGOTTEN in verdict.codes)
        elif verdict.answer is Answer.ACTIVE:
            yield from self._used(at, tuple(dict.fromkeys(verdict.codes)))
        else:
            yield from self._lost(at, is_off=verdict.answer is Answer.OFF)
            return
        self.watched += BUCKET
        self.days.add(at.astimezone(UTC).date())

    def _rests(self, at: datetime, *, session_is_open: bool) -> None:
        if self.session_from is not None and session_is_open:
            # All the time that it was open, nothing else happened.
            self.start, self.not_before = self.session_from, at
        self.session_from = None
        self.start, self.is_quiet = self.start or at, True
        self.idle += BUCKET

    def _used(self, at: datetime, codes: tuple[str, ...]) -> Iterator[Quiet]:
        began = self.start or at
        yield from self._ended(at, Ending.RETURN, codes)
        if NO_WORK.issuperset(codes):
            self.session_from = self.session_from or began
        else:
            self.active_at, self.session_from = at + BUCKET, None
        self.start = at + BUCKET

    def _silence(self, since: datetime) -> Iterator[Quiet]:
        """No record at all: of a machine that is off, or that nobody read."""
        power = self._power(since + BUCKET)
        is_off = power is not None and power.powered is False
        self._forget()
        yield from self._lost(since, is_off=is_off)

    def _lost(self, at: datetime, *, is_off: bool) -> Iterator[Quiet]:
        if is_off:
            self._forget()
        self.session_from = None
        yield from self._ended(at, Ending.OFF if is_off else Ending.UNKNOWN)

    def _forget(self) -> None:
        """What was read before is no evidence of what comes after."""
        self.coverage.clear()
        self.host_coverage.clear()

    def _ended(self, at: datetime, ending: Ending, because: tuple[str, ...] = ()) -> Iterator[Quiet]:
        if self.is_quiet and self.start is not None:
            yield Quiet(self.start, at, ending, because, self.not_before)
        self.start, self.not_before, self.is_quiet = None, None, False

    def _end(self, until: datetime) -> Iterator[Quiet]:
        if self.reached is None:
            return
        if self.reached < until - BUCKET:
            yield from self._silence(self.reached)
        else:
            yield from self._ended(self.reached, Ending.NOW)


def lately(kept: deque[float], share: float) -> float:
    """The mean of the last half hour; nothing at all read now is nothing read."""
    kept.append(share)
    return sum(kept) / len(kept) if share else 0.0


def history_of(known: Known, buckets: Iterable[Bucket], *, limits: Limits, until: datetime) -> History:
    """`buckets` of this machine in the order of time; `until`: as far as the record reaches."""
    return Fold(known, limits).run(buckets, until=until)
