"""What a policy would have stopped of quiet times, counted by hand: when, for how long, rightly or not, and whom it would have asked instead."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from fleet.idle.dryrun.evidence import BUCKET, Held
from fleet.idle.dryrun.quiet import Ending, History, Quiet
from fleet.idle.dryrun.simulate import Judged, Terms, simulate
from fleet.idle.hours import OfficeHours
from tests.fleet.idle.dryrun.days import MONDAY

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TERMS = Terms(window=60 * MINUTE, grace=30 * MINUTE)
BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = OfficeHours(frozenset(range(5)), time(9), time(19), BERLIN)


def one(minutes: int, ending: Ending = Ending.RETURN, *, start: datetime = MONDAY, holds=()) -> History:
    quiet = Quiet(start, start + minutes * MINUTE, ending)
    return History(7, 4, (quiet,), holds=tuple(holds))


def stops(history: History, terms: Terms = TERMS):
    return simulate([history], terms)[0]


def test_it_stops_after_window_and_grace_until_work_returns():
    [stop] = stops(one(300))
    assert (stop.at, stop.until) == (MONDAY + 90 * MINUTE, MONDAY + 300 * MINUTE)
    # 3.5 h of four GPUs.
    assert stop.gpu_hours == pytest.approx(14.0)
    assert stop.judged is Judged.RIGHT


def test_use_within_the_grace_is_no_stop():
    assert stops(one(90)) == []
    assert stops(one(61)) == []


@pytest.mark.parametrize(
    ("minutes", "ending", "judged"),
    [
        (120, Ending.RETURN, Judged.WRONG),
        (121, Ending.RETURN, Judged.RIGHT),
        (100, Ending.UNKNOWN, Judged.UNCLEAR),
        (121, Ending.UNKNOWN, Judged.RIGHT),
        (100, Ending.NOW, Judged.GOES_ON),
        (500, Ending.NOW, Judged.GOES_ON),
        (100, Ending.OFF, Judged.RIGHT),
    ],
)
def test_only_work_within_half_an_hour_makes_a_stop_wrong(minutes, ending, judged):
    assert stops(one(minutes, ending))[0].judged is judged


def test_a_job_that_held_the_machine_names_the_run_that_was_hit():
    back = MONDAY + 110 * MINUTE
    jobs = [Held("job", MONDAY - DAY, MONDAY - HOUR, "yesterday"), Held("job", back + 2 * MINUTE, None, "vid-ft-88")]
    assert stops(one(110, holds=jobs))[0].run == "vid-ft-88"
    # Nobody says that a person's hold is a run, and a right stop hits none.
    assert stops(one(110, holds=[Held("person", back, None, "mine")]))[0].run == ""
    assert stops(one(500, holds=jobs))[0].run == ""


def test_a_job_that_began_later_was_not_hit():
    later = Held("job", MONDAY + 110 * MINUTE + BUCKET, None, "later")
    assert stops(one(110, holds=[later]))[0].run == ""


def test_in_office_hours_it_asks_and_stops_after_them():
    """Idle since 08:00 in Berlin: due at 09:30, within office hours, which end at 19:00; a new warning, and then its grace."""
    idle = one(24 * 60, start=datetime(2026, 11, 2, 7, tzinfo=UTC))
    stopped, asked = simulate([idle], Terms(60 * MINUTE, 30 * MINUTE, OFFICE))
    assert [ask.at for ask in asked] == [datetime(2026, 11, 2, 8, tzinfo=UTC)]
    assert [stop.at for stop in stopped] == [datetime(2026, 11, 2, 18, 30, tzinfo=UTC)]


def test_a_grace_that_reaches_into_office_hours_is_not_used_up():
    """Warned at 08:50, due at 09:20."""
    idle = one(300, start=datetime(2026, 11, 2, 6, 50, tzinfo=UTC))
    stopped, asked = simulate([idle], Terms(60 * MINUTE, 30 * MINUTE, OFFICE))
    assert (stopped, len(asked)) == ([], 1)


def test_weekends_are_no_office_hours():
    saturday = one(300, start=datetime(2026, 11, 7, 9, tzinfo=UTC))
    stopped, asked = simulate([saturday], Terms(60 * MINUTE, 30 * MINUTE, OFFICE))
    assert (len(stopped), asked) == (1, [])


def test_a_forgotten_session_puts_off_what_is_due():
    quiet = Quiet(MONDAY, MONDAY + 10 * HOUR, Ending.RETURN, not_before=MONDAY + 4 * HOUR)
    [stop] = stops(History(7, 4, (quiet,)))
    assert stop.at == MONDAY + 4 * HOUR + 30 * MINUTE


def test_stops_of_several_machines_come_in_the_order_of_time():
    late, early = one(300, start=MONDAY + DAY), one(300)
    assert [stop.at.day for stop in simulate([late, early], TERMS)[0]] == [2, 3]
