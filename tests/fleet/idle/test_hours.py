"""Office hours: edges of the day, summer time, over midnight, holidays, days worked instead of others."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.idle.hours import (
    OfficeHours,
    UnknownCalendar,
    calendar_of,
    in_office,
    is_office_day,
    is_workday,
    normal_code,
    office_ends,
)

BERLIN, NEW_YORK, SHANGHAI = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Shanghai")
WEEKDAYS = frozenset(range(5))
EVERY_DAY = frozenset(range(7))
CLOCKS = st.integers(0, 1439).map(lambda minute: time(minute // 60, minute % 60))


def hours(start="09:00", until="18:00", zone=BERLIN, days=WEEKDAYS, holidays=""):
    return OfficeHours(days, time.fromisoformat(start), time.fromisoformat(until), zone, holidays)


def local(text, zone=BERLIN, fold=0):
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).astimezone(UTC)


DAY_SHIFT, NIGHT_SHIFT = hours(), hours("22:00", "06:00")
TO_MIDNIGHT, LAST_MINUTE, ROUND_THE_CLOCK = hours("09:00", "00:00"), hours("09:00", "23:59"), hours("00:00", "00:00")


@pytest.mark.parametrize(
    ("which", "at", "inside"),
    [
        # Monday 30 November 2026
        (DAY_SHIFT, "2026-11-30 08:59:59", False),
        (DAY_SHIFT, "2026-11-30 09:00:00", True),
        (DAY_SHIFT, "2026-11-30 17:59:59", True),
        (DAY_SHIFT, "2026-11-30 18:00:00", False),
        (DAY_SHIFT, "2026-11-28 12:00:00", False),
        (LAST_MINUTE, "2026-11-30 23:58:59", True),
        (LAST_MINUTE, "2026-11-30 23:59:00", False),
        (LAST_MINUTE, "2026-12-01 00:00:00", False),
        (TO_MIDNIGHT, "2026-11-30 23:59:59", True),
        (TO_MIDNIGHT, "2026-12-01 00:00:00", False),
        # Friday's night belongs to Friday, also where it is Saturday; Sunday's is none.
        (NIGHT_SHIFT, "2026-11-27 22:00:00", True),
        (NIGHT_SHIFT, "2026-11-28 00:00:00", True),
        (NIGHT_SHIFT, "2026-11-28 05:59:59", True),
        (NIGHT_SHIFT, "2026-11-28 06:00:00", False),
        (NIGHT_SHIFT, "2026-11-28 23:00:00", False),
        (NIGHT_SHIFT, "2026-11-30 05:00:00", False),
        (ROUND_THE_CLOCK, "2026-11-27 23:59:59", True),
        (ROUND_THE_CLOCK, "2026-11-28 00:00:00", False),
        (ROUND_THE_CLOCK, "2026-11-30 00:00:00", True),
    ],
    ids=str,
)
def test_edges(which, at, inside):
    assert in_office(which, local(at)) is inside


@pytest.mark.parametrize(
    ("which", "at", "ends"),
    [
        (DAY_SHIFT, "2026-11-30 09:00", "2026-11-30 18:00"),
        (DAY_SHIFT, "2026-11-30 18:00", None),
        (TO_MIDNIGHT, "2026-11-30 12:00", "2026-12-01 00:00"),
        (NIGHT_SHIFT, "2026-11-27 23:00", "2026-11-28 06:00"),
        # Days that touch are one: a stop at midnight between them would lie within office hours.
        (ROUND_THE_CLOCK, "2026-11-24 12:00", "2026-11-28 00:00"),
        # December 25 and 26 are holidays, the 27th is a Sunday.
        (hours("00:00", "00:00", holidays="DE"), "2026-12-21 12:00", "2026-12-25 00:00"),
    ],
    ids=str,
)
def test_when_they_end(which, at, ends):
    assert office_ends(which, local(at)) == (local(ends) if ends else None)


def test_hours_without_end_are_said_to_end_after_a_year():
    forever = hours("00:00", "00:00", days=EVERY_DAY)
    assert office_ends(forever, local("2026-11-30 12:00")) > local("2027-11-30 12:00")


# Germany: 29 March 2026, 02:00 becomes 03:00; 25 October 2026, 03:00 becomes 02:00 again.
@pytest.mark.parametrize(
    ("which", "at", "inside"),
    [
        # The same hour on the wall on both sides of the switch, an hour apart in UTC.
        (hours(days=EVERY_DAY), datetime(2026, 3, 28, 8, 0, tzinfo=UTC), True),
        (hours(days=EVERY_DAY), datetime(2026, 3, 28, 7, 59, tzinfo=UTC), False),
        (hours(days=EVERY_DAY), datetime(2026, 3, 29, 7, 0, tzinfo=UTC), True),
        (hours(days=EVERY_DAY), datetime(2026, 3, 29, 6, 59, tzinfo=UTC), False),
        (hours(days=EVERY_DAY), datetime(2026, 3, 29, 16, 0, tzinfo=UTC), False),
        (hours(days=EVERY_DAY), datetime(2026, 10, 24, 7, 0, tzinfo=UTC), True),
        (hours(days=EVERY_DAY), datetime(2026, 10, 25, 7, 0, tzinfo=UTC), False),
        (hours(days=EVERY_DAY), datetime(2026, 10, 25, 8, 0, tzinfo=UTC), True),
        (hours(days=EVERY_DAY), datetime(2026, 10, 25, 17, 0, tzinfo=UTC), False),
        # 02:30 is never shown: the night that ends then ends at 03:30, half an hour later, not earlier.
        (hours("22:00", "02:30", days=EVERY_DAY), datetime(2026, 3, 29, 1, 29, tzinfo=UTC), True),
        (hours("22:00", "02:30", days=EVERY_DAY), datetime(2026, 3, 29, 1, 30, tzinfo=UTC), False),
        # 02:30 is shown twice: it ends with the second, and begins with the first.
        (hours("22:00", "02:30", days=EVERY_DAY), datetime(2026, 10, 25, 1, 29, tzinfo=UTC), True),
        (hours("22:00", "02:30", days=EVERY_DAY), datetime(2026, 10, 25, 1, 30, tzinfo=UTC), False),
        (hours("02:30", "10:00", days=EVERY_DAY), datetime(2026, 10, 25, 0, 29, tzinfo=UTC), False),
        (hours("02:30", "10:00", days=EVERY_DAY), datetime(2026, 10, 25, 0, 30, tzinfo=UTC), True),
    ],
    ids=str,
)
def test_both_switches_of_summer_time(which, at, inside):
    assert in_office(which, at) is inside


@pytest.mark.parametrize(
    ("day", "length"), [("2026-03-07", 24), ("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-02", 24)]
)
def test_a_day_round_the_clock_has_the_hours_that_it_has(day, length):
    at = local(f"{day} 00:00", NEW_YORK)
    weekday = at.astimezone(NEW_YORK).weekday()
    ends = office_ends(hours("00:00", "00:00", zone=NEW_YORK, days=frozenset({weekday})), at)
    assert ends - at == timedelta(hours=length)


def test_the_clock_is_the_teams_not_ours():
    office = hours(zone=SHANGHAI)
    assert in_office(office, datetime(2026, 11, 30, 1, 0, tzinfo=UTC))
    assert not in_office(office, datetime(2026, 11, 30, 10, 0, tzinfo=UTC))
    # Sunday evening in UTC is Monday morning there.
    assert in_office(hours("01:00", "09:00", zone=SHANGHAI), datetime(2026, 11, 29, 18, 0, tzinfo=UTC))


# China in 2026, as announced: Golden Week from 1 to 7 October, worked for on 20 September and 10 October, a Sunday and a Saturday.
@pytest.mark.parametrize(
    ("day", "worked"),
    [
        ("2026-09-19", False),
        ("2026-09-20", True),
        ("2026-09-30", True),
        *[(f"2026-10-0{number}", False) for number in range(1, 8)],
        ("2026-10-08", True),
        ("2026-10-10", True),
        ("2026-10-11", False),
        # Spring Festival
        ("2026-02-14", True),
        ("2026-02-16", False),
        ("2026-02-23", False),
        ("2026-02-28", True),
    ],
)
def test_golden_week_and_the_weekends_worked_for_it(day, worked):
    calendar_of.cache_clear()
    noon = local(f"{day} 12:00", SHANGHAI)
    assert in_office(hours(zone=SHANGHAI, holidays="CN"), noon) is worked
    calendar_of.cache_clear()
    assert is_workday(date.fromisoformat(day), "CN") is worked


@pytest.mark.parametrize(
    ("code", "day", "office"),
    [
        ("", "2026-12-25", True),
        ("DE", "2026-12-25", False),
        ("DE", "2026-11-02", True),
        # All Saints' Day 2027 is a Monday, and a holiday in Bavaria alone of these two.
        ("DE", "2027-11-01", True),
        ("DE-BY", "2027-11-01", False),
        ("de-by", "2027-11-01", False),
        # Weekends elsewhere are other days; office days are those that the team named.
        ("IL", "2026-11-27", True),
    ],
)
def test_holidays_of_a_place(code, day, office):
    assert is_office_day(hours(holidays=code), date.fromisoformat(day)) is office


def test_a_night_before_a_holiday_runs_into_it_and_the_holidays_own_night_is_none():
    night = hours("22:00", "06:00", holidays="DE")
    assert in_office(night, local("2026-12-25 05:00"))
    assert not in_office(night, local("2026-12-25 23:00"))


@pytest.mark.parametrize(
    ("code", "day", "worked"),
    [("", "2026-11-28", False), ("", "2026-11-30", True), ("IL", "2026-11-27", False), ("IL", "2026-11-29", True)],
)
def test_workdays_of_a_place(code, day, worked):
    assert is_workday(date.fromisoformat(day), code) is worked


@pytest.mark.parametrize("code", ["XX", "DEU", "Germany", "DE-XX", "CN-BJ", "-", "DE-BY-1"])
def test_places_that_nobody_knows_are_refused(code):
    with pytest.raises(UnknownCalendar):
        normal_code(code)
    with pytest.raises(UnknownCalendar):
        is_workday(date(2026, 11, 30), code)


def test_a_region_that_nobody_knows_is_refused_with_those_that_are():
    with pytest.raises(UnknownCalendar) as refusal:
        normal_code("DE-XX")
    assert "BY" in refusal.value.regions
    with pytest.raises(UnknownCalendar) as refusal:
        normal_code("XX-BY")
    assert not refusal.value.is_country_known
    assert normal_code(" de-by ") == ("DE", "BY")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    at=st.timedeltas(timedelta(0), timedelta(days=730)).map(lambda passed: datetime(2026, 1, 1, tzinfo=UTC) + passed),
    start=CLOCKS, until=CLOCKS, days=st.frozensets(st.integers(0, 6)),
    zone=st.sampled_from([BERLIN, NEW_YORK, SHANGHAI]), code=st.sampled_from(["", "DE", "CN", "US"]),
)  # fmt: skip
def test_they_hold_up_to_their_end_and_not_at_it(at, start, until, days, zone, code):
    office = OfficeHours(days, start, until, zone, code)
    ends = office_ends(office, at)
    assert (ends is not None) is in_office(office, at)
    if ends is not None and ends < at + timedelta(days=300):
        assert in_office(office, ends - timedelta(microseconds=1))
        assert not in_office(office, ends)
