"""When schedules start and stop machines: summer time both ways, borders of days, over midnight, weekdays, holidays, long pauses."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from fleet.idle.schedules.edges import Clock, Edge, edges_of, last_edge, next_edges

BERLIN, NEW_YORK, SHANGHAI = (ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Asia/Shanghai"))
WEEK = frozenset(range(5))
EVERY = frozenset(range(7))


def clock(start=None, stop=None, *, days=WEEK, zone=BERLIN, holidays="") -> Clock:
    at = {name: time.fromisoformat(text) if text else None for name, text in (("start", start), ("stop", stop))}
    return Clock(days, at["start"], at["stop"], zone, holidays)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def said(edges: list[Edge]) -> list[str]:
    return [f"{edge.turn} {edge.at:%m-%d %H:%M}" for edge in edges]


# name, schedule, now, the last edge, the next three.
CASES = [
    ("by day", clock("08:00", "20:00"), "2026-11-30 12:00", "start 11-30 07:00", ["stop 11-30 19:00", "start 12-01 07:00", "stop 12-01 19:00"]),
    ("after work", clock("08:00", "20:00"), "2026-11-30 22:00", "stop 11-30 19:00", ["start 12-01 07:00", "stop 12-01 19:00", "start 12-02 07:00"]),
    ("the moment itself has come", clock("08:00", "20:00"), "2026-11-30 19:00", "stop 11-30 19:00", ["start 12-01 07:00", "stop 12-01 19:00", "start 12-02 07:00"]),
    ("over a weekend", clock("08:00", "20:00"), "2026-11-29 12:00", "stop 11-27 19:00", ["start 11-30 07:00", "stop 11-30 19:00", "start 12-01 07:00"]),
    ("only stops", clock(stop="20:00"), "2026-11-27 20:00", "stop 11-27 19:00", ["stop 11-30 19:00", "stop 12-01 19:00", "stop 12-02 19:00"]),
    ("only starts", clock("08:00"), "2026-11-28 20:00", "start 11-27 07:00", ["start 11-30 07:00", "start 12-01 07:00", "start 12-02 07:00"]),
    ("over midnight", clock("22:00", "06:00"), "2026-12-01 04:00", "start 11-30 21:00", ["stop 12-01 05:00", "start 12-01 21:00", "stop 12-02 05:00"]),
    ("over midnight into a day that is none", clock("22:00", "06:00"), "2026-11-28 04:00", "start 11-27 21:00", ["stop 11-28 05:00", "start 11-30 21:00", "stop 12-01 05:00"]),
    ("a minute before midnight", clock("00:00", "23:59", days=EVERY), "2026-11-30 22:59", "stop 11-30 22:59", ["start 11-30 23:00", "stop 12-01 22:59", "start 12-01 23:00"]),
    ("all day long is over midnight", clock("00:00", "00:00", days=frozenset({0})), "2026-11-30 12:00", "start 11-29 23:00", ["stop 11-30 23:00", "start 12-06 23:00", "stop 12-07 23:00"]),
    ("one weekday", clock("08:00", "20:00", days=frozenset({2})), "2026-11-30 12:00", "stop 11-25 19:00", ["start 12-02 07:00", "stop 12-02 19:00", "start 12-09 07:00"]),
    ("a day ahead of UTC", clock("06:00", "07:00", zone=SHANGHAI), "2026-11-29 22:30", "start 11-29 22:00", ["stop 11-29 23:00", "start 11-30 22:00", "stop 11-30 23:00"]),
    ("a day behind UTC", clock("08:00", "21:00", zone=NEW_YORK), "2026-12-01 02:30", "stop 12-01 02:00", ["start 12-01 13:00", "stop 12-02 02:00", "start 12-02 13:00"]),
    # Clocks in Berlin go from 02:00 to 03:00 on 29 March, from 03:00 to 02:00 on 25 October 2026.
    ("a time that is left out comes as much later", clock("02:30", days=EVERY), "2026-03-29 00:30", "start 03-28 01:30", ["start 03-29 01:30", "start 03-30 00:30", "start 03-31 00:30"]),
    ("a stop that is left out, too", clock(stop="02:30", days=EVERY), "2026-03-29 00:30", "stop 03-28 01:30", ["stop 03-29 01:30", "stop 03-30 00:30", "stop 03-31 00:30"]),
    ("a start that comes twice is the first", clock("02:30", days=EVERY), "2026-10-25 00:00", "start 10-24 00:30", ["start 10-25 00:30", "start 10-26 01:30", "start 10-27 01:30"]),
    ("a stop that comes twice is the second", clock(stop="02:30", days=EVERY), "2026-10-25 00:45", "stop 10-24 00:30", ["stop 10-25 01:30", "stop 10-26 01:30", "stop 10-27 01:30"]),
    ("after the change the wall clock stays", clock("08:00", "20:00", days=EVERY), "2026-03-28 20:00", "stop 03-28 19:00", ["start 03-29 06:00", "stop 03-29 18:00", "start 03-30 06:00"]),
    # 25 and 26 December are holidays in Germany, a Friday and a Saturday in 2026.
    ("nothing starts on a holiday, and it stops", clock("08:00", "20:00", holidays="DE"), "2026-12-24 20:00", "stop 12-24 19:00", ["stop 12-25 19:00", "start 12-28 07:00", "stop 12-28 19:00"]),
    # China works on Saturday, 10 October 2026 instead of a day of the National Day week.
    ("a Saturday that is worked instead", clock("08:00", "20:00", zone=SHANGHAI, holidays="CN"), "2026-10-09 13:00", "stop 10-09 12:00", ["start 10-10 00:00", "stop 10-10 12:00", "start 10-12 00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schedule", "now", "last", "following"), CASES, ids=[case[0] for case in CASES])
def test_edges(name, schedule, now, last, following):
    found = last_edge(schedule, utc(now))
    assert found is not None
    assert said([found]) == [last]
    assert said(next_edges(schedule, utc(now), 3)) == following


def test_after_a_downtime_of_two_days_only_the_last_counts():
    schedule = clock("08:00", "20:00")
    before, after = utc("2026-12-01 12:00"), utc("2026-12-03 12:00")
    between = [edge for edge in next_edges(schedule, before, 9) if edge.at <= after]
    assert len(between) == 4
    assert last_edge(schedule, after) == between[-1]


def test_one_that_never_comes_has_none():
    never = clock("08:00", days=frozenset())
    assert last_edge(never, utc("2026-12-01 12:00")) is None
    assert next_edges(never, utc("2026-12-01 12:00"), 3) == []


@pytest.mark.parametrize("schedule", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_the_last_of_every_hour_of_a_year_is_the_newest_of_all(schedule):
    """Held against the plain way: every edge there is, sorted."""
    first = utc("2026-01-01 00:00")
    every = sorted(
        (edge for back in range(-60, 390) for edge in edges_of(schedule, (first + timedelta(days=back)).date())),
        key=lambda edge: edge.order,
    )
    index = 0
    for hour in range(0, 366 * 24, 7):
        now = first + timedelta(hours=hour, minutes=17)
        while index + 1 < len(every) and every[index + 1].at <= now:
            index += 1
        assert last_edge(schedule, now) == every[index]
        assert next_edges(schedule, now, 2) == every[index + 1 : index + 3]
