"""When a reader may be told: quiet hours and digests, on the clock of the reader's own zone. Pure: `now` is an argument.

Clocks that change: an end that the night of the change leaves out comes an hour later, and one that comes twice counts the first time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

DIGEST_AT = time(9)
MONDAY = 0
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """`digest`: none, hourly, daily or weekly. Quiet hours are [quiet_from, quiet_until); None = there are none."""

    zone: ZoneInfo
    digest: str = "none"
    quiet_from: time | None = None
    quiet_until: time | None = None

    def due(self, now: datetime, *, breaks_quiet: bool = False) -> datetime:
        """The first moment from `now` on at which the reader may be told."""
        moment = self._digest_after(now)
        return moment if breaks_quiet else self._after_quiet(moment)

    def _digest_after(self, now: datetime) -> datetime:
        if self.digest == "hourly":
            return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        if self.digest not in {"daily", "weekly"}:
            return now
        day = now.astimezone(self.zone).date()
        while (moment := self._at(day, DIGEST_AT)) <= now or (self.digest == "weekly" and day.weekday() != MONDAY):
            day += DAY
        return moment

    def _after_quiet(self, moment: datetime) -> datetime:
        local = moment.astimezone(self.zone)
        if not self._is_quiet(local.time()):
            return moment
        assert self.quiet_until is not None
        day = local.date() if local.time() < self.quiet_until else local.date() + DAY
        end = self._at(day, self.quiet_until)
        return end if end > moment else self._at(day, self.quiet_until, fold=1)

    def _is_quiet(self, clock: time) -> bool:
        start, end = self.quiet_from, self.quiet_until
        if start is None or end is None or start == end:
            return False
        return start <= clock < end if start < end else clock >= start or clock < end

    def _at(self, day: date, clock: time, *, fold: int = 0) -> datetime:
        return datetime.combine(day, clock.replace(fold=fold), self.zone).astimezone(UTC)
