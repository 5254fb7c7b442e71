"""When a whole machine was quiet, by the same verdict that stops machines: what is unknown ends it, and nothing of that counts as idle."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from fleet.idle.dryrun.evidence import BUCKET, Held, Power
from fleet.idle.verdict.evidence import Mode
from fleet.idle.verdict.limits import Limits
from tests.fleet.idle.dryrun.days import LONG_AGO, MONDAY, REST, history, minutes, quiet, told

HOUR = timedelta(hours=1)


def test_it_begins_where_work_ended_and_ends_where_work_begins():
    assert quiet("ww...w.w") == [(10, 25, "return"), (30, 35, "return")]


def test_it_begins_with_the_record_and_goes_on_at_its_end():
    assert quiet("..w..") == [(0, 10, "return"), (15, 25, "now")]


def test_work_next_to_work_is_no_quiet_time():
    assert quiet("wwww") == []


def test_disk_ends_it_as_work_does():
    found = history("w...d..").quiet
    assert (minutes(found[0].end), found[0].because) == (20, ("disk",))


@pytest.mark.parametrize("gap", ["???", "   "])
def test_silence_ends_it_and_what_comes_after_begins_anew(gap):
    found = quiet(f"w..{gap}{'.' * 12}")
    assert found[0] == (5, 15, "unknown")
    # After silence with records, nine tenths of half an hour have to be read again.
    assert found[1][0] >= 30
    assert found[1][2] == "now"


def test_silence_is_not_counted_as_watched():
    found = history("w..???")
    assert (found.watched, found.idle) == (3 * BUCKET, 2 * BUCKET)


def test_one_thin_reading_within_half_an_hour_that_was_read_does_not_end_it():
    rest = replace(REST, coverage=1.0)
    assert quiet("w" * 6 + "." * 6 + "-" + "." * 6, rest=rest) == [(30, 95, "now")]


def test_thin_readings_one_after_the_other_do():
    assert quiet("w" * 6 + "." * 3 + "--" + "." * 8)[0] == (30, 50, "unknown")


def test_where_a_record_stops_early_nobody_knows():
    assert quiet("w....    ") == [(5, 25, "unknown")]


def test_one_gpu_that_says_nothing_keeps_all_of_them_unknown():
    assert quiet("....", rest=replace(REST, unread=1)) == []


def test_a_rented_gpu_that_never_reported_does_too():
    assert quiet("....", gpus=8) == []


def test_power_above_its_own_rest_is_use():
    assert quiet("....", rest=replace(REST, power_ratio=1.3)) == []
    assert quiet("....", rest=replace(REST, power_ratio=1.3), limits=Limits(floor_ratio=1.5)) == [(0, 20, "now")]


def test_limits_are_those_of_the_verdict():
    busy = replace(REST, cpu_percent=20.0)
    assert quiet("....", rest=busy) == []
    assert quiet("....", rest=busy, limits=Limits(cpu_percent=25.0)) == [(0, 20, "now")]


def test_off_ends_it_without_a_return():
    powers = [Power(LONG_AGO, True, LONG_AGO), Power(MONDAY + 4 * BUCKET, False, None)]
    assert quiet("w...????", powers=powers) == [(5, 20, "off")]
    assert quiet("w...    ", powers=powers) == [(5, 20, "off")]


def test_a_start_has_to_settle_first():
    powers = [Power(LONG_AGO, False, None), Power(MONDAY, True, MONDAY)]
    # Twenty minutes to set up, and then the five minutes that are judged.
    assert quiet("." * 12, powers=powers) == [(20, 60, "now")]


def test_what_no_list_showed_is_never_idle():
    assert quiet("....", powers=()) == []
    assert quiet("....", powers=[Power(LONG_AGO, None, LONG_AGO)]) == []


def test_a_hold_is_use_while_it_lasts():
    held = Held("job", MONDAY + 3 * BUCKET, MONDAY + 5 * BUCKET, "run-7")
    assert quiet("." * 8, holds=[held]) == [(0, 15, "return"), (25, 40, "now")]


def test_a_forgotten_session_keeps_a_machine_for_some_hours_and_no_longer():
    """From then on the hours before it count too: nothing else happened in them."""
    [found] = history("w" + "s" * 24, limits=Limits(session_hours=1)).quiet
    assert told(found) == (5, 125, "now")
    assert found.not_before == MONDAY + HOUR


def test_who_signs_in_again_is_back():
    assert quiet("w....ss", limits=Limits(session_hours=1)) == [(5, 25, "return")]


def test_a_session_that_was_closed_counts_until_then():
    assert quiet("wss...", limits=Limits(session_hours=1)) == [(15, 30, "now")]


def test_a_pinned_machine_is_never_quiet():
    assert quiet("....", mode=Mode.PINNED) == []


def test_a_model_that_waits_is_use_but_on_a_serving_machine():
    serving = replace(REST, endpoints=1, serving_coverage=1.0, requests=0, waiting=0.0, ready_at=MONDAY - HOUR)
    assert quiet("....", rest=serving) == []
    assert quiet("....", rest=serving, mode=Mode.SERVING) == [(0, 20, "now")]
    assert quiet("....", rest=replace(serving, requests=1), mode=Mode.SERVING) == []
    assert quiet("....", rest=replace(serving, requests=None), mode=Mode.SERVING) == []
