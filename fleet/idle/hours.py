"""Office hours on somebody's clock: through changes to and from summer time, over midnight, around holidays and days worked instead. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache

import holidays as calendars

DAY = timedelta(days=1)
# Office hours that touch each other day after day for longer than this do not end.
LONGEST_CHAIN_DAYS = 370


class UnknownCalendar(ValueError):
    """Nobody keeps the holidays of this place. `is_country_known`: only the region is not; it has `regions`."""

    def __init__(self, code: str, regions: tuple[str, ...] = (), *, is_country_known: bool = False) -> None:
        super().__init__(f"no holidays are known of {code!r}")
        self.code, self.regions, self.is_country_known = code, regions, is_country_known


@dataclass(frozen=True, slots=True)
class OfficeHours:
    """[start, until) on the clock of `zone`, on `days` (0 = Monday); until at or before start: on the next day.

    `holidays`: an ISO 3166 country, with a region after a hyphen ("DE-BY"). Its holidays are no office days; days that it works instead
    of others (weekends in China, around long holidays) are, whatever their weekday. "": every week is the same.
    """

    days: frozenset[int]
    start: time
    until: time
    zone: tzinfo
    holidays: str = ""


def in_office(hours: OfficeHours, at: datetime) -> bool:
    return _current(hours, at) is not None


def office_ends(hours: OfficeHours, at: datetime) -> datetime | None:
    """When the office hours that hold at `at` are over, in UTC; None = they do not hold. Hours that follow without a pause are one."""
    found = _current(hours, at)
    if found is None:
        return None
    last = at + timedelta(days=LONGEST_CHAIN_DAYS)
    while found < last and (more := _current(hours, found)) is not None:
        found = more
    return found


def is_office_day(hours: OfficeHours, day: date) -> bool:
    if not hours.holidays:
        return day.weekday() in hours.days
    calendar = calendar_of(hours.holidays)
    if day in calendar:
        return False
    return day.weekday() in hours.days or _worked_instead(calendar, day)


def is_workday(day: date, code: str) -> bool:
    """Whether people work on it where `code` is, by the weekends of that place; "": from Monday to Friday. Raises UnknownCalendar."""
    return calendar_of(code).is_working_day(day) if code else day.weekday() < 5


@lru_cache(maxsize=64)
def calendar_of(code: str) -> calendars.HolidayBase:
    """Raises UnknownCalendar."""
    country, region = normal_code(code)
    return calendars.country_holidays(country, subdiv=region or None)


def normal_code(code: str) -> tuple[str, str]:
    """Country and region as the calendars spell them. Raises UnknownCalendar."""
    country, _, region = code.strip().partition("-")
    country = country.upper()
    known = regions_by_country().get(country)
    if known is None:
        raise UnknownCalendar(code)
    spelt = next((name for name in known if name.casefold() == region.casefold()), "")
    if region and not spelt:
        raise UnknownCalendar(code, known, is_country_known=True)
    return country, spelt


@lru_cache(maxsize=1)
def regions_by_country() -> dict[str, tuple[str, ...]]:
    """Two letters of a country, and the regions of it that have holidays of their own."""
    supported = calendars.list_supported_countries(include_aliases=False)
    return {country: tuple(regions) for country, regions in supported.items()}


def _worked_instead(calendar: calendars.HolidayBase, day: date) -> bool:
    return calendar.is_weekend(day) and calendar.is_working_day(day)


def _current(hours: OfficeHours, at: datetime) -> datetime | None:
    """The end of those hours that `at` lies in."""
    return max((end for start, end in _around(hours, at) if start <= at < end), default=None)


def _around(hours: OfficeHours, at: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Hours that began on the local day of `at` or the day before: none is longer than a day."""
    today = at.astimezone(hours.zone).date()
    for day in (today - DAY, today):
        if is_office_day(hours, day):
            last = day if hours.until > hours.start else day + DAY
            yield _earliest(day, hours.start, hours.zone), _latest(last, hours.until, hours.zone)


def _earliest(day: date, clock: time, zone: tzinfo) -> datetime:
    """A clock shows some times twice and some never; of its two readings the one that makes office hours longer counts."""
    return min(_readings(day, clock, zone))


def _latest(day: date, clock: time, zone: tzinfo) -> datetime:
    return max(_readings(day, clock, zone))


def _readings(day: date, clock: time, zone: tzinfo) -> Iterator[datetime]:
    for fold in (0, 1):
        yield datetime.combine(day, clock.replace(fold=fold), zone).astimezone(UTC)
