"""The month as a table: where hours lie in the reader's time zone, what a cell says, and what nobody knows."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine

from fleet.pages.heat import DAYS, Cell, lay_out, month_before
from fleet.states import GpuState
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.roll import roll_up
from tests.fleet.telemetry.rolling import reporting, store

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
HOURS = timedelta(hours=1)
SHANGHAI, NEW_YORK, KOLKATA = ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")
BUSY = Cell(GpuState.WORKING, 90, None)


@pytest.mark.parametrize(
    ("zone", "hour", "day"), [(UTC, 12, -1), (SHANGHAI, 20, -1), (NEW_YORK, 8, -1), (KOLKATA, 17, -1)]
)
def test_an_hour_lies_where_the_readers_clock_stood(zone, hour, day):
    since = month_before(NOON, zone)
    heat = lay_out([(NOON, BUSY)], since=since, zone=zone)
    assert heat.rows[hour][day] is BUSY
    assert sum(cell.state is not None for row in heat.rows for cell in row) == 1
    assert len(heat.days) == DAYS
    assert heat.days[-1] == NOON.astimezone(zone).date()


def test_a_night_without_an_hour_leaves_its_cell_empty():
    """In New York 9 March 2031 has no hour from 2 to 3."""
    since = month_before(NOON, NEW_YORK)
    hours = [(since.astimezone(UTC) + number * HOURS, BUSY) for number in range(24 * DAYS)]
    heat = lay_out(hours, since=since, zone=NEW_YORK)
    day = heat.days.index(datetime(2031, 3, 9).date())  # noqa: DTZ001
    assert [hour for hour in range(24) if heat.rows[hour][day].state is None] == [2]


def test_a_cell_says_what_took_most_of_the_hour_and_how_idle_it_was():
    cell = Cell.of({GpuState.WORKING: 2000.0, GpuState.HELD_IDLE: 1600.0}, 51.6)
    assert cell.words == "Working, 52% busy, 44% of the time idle"
    assert Cell.of({GpuState.UNKNOWN: 3600.0}, None).words == "Unknown"
    assert Cell.of({}, None).words == "nothing known"


@pytest.fixture
def month(acme, make_instance, db):
    """A machine whose two GPUs worked for an hour, of which one was idle in the next; before that nobody knows."""
    with time_machine.travel(NOON, tick=False):
        ensure_partitions(now=NOON, since=NOON - timedelta(days=40))
        machine = make_instance(gpus=2, first_seen_at=NOON - 3 * HOURS)
        machine.gpus.update(first_seen_at=NOON - 3 * HOURS)
        reporting(machine, every=60)
        for gpu in machine.gpus.all():
            store(gpu, NOON - 3 * HOURS, seconds=3600, every=60, utilization_percent=80.0)
            held = GpuState.HELD_IDLE if gpu.index else GpuState.WORKING
            store(gpu, NOON - 2 * HOURS, seconds=3600, every=60, utilization_percent=60.0 * (1 - gpu.index), state=held)
        roll_up(now=NOON)
        yield machine


def cells_of(response) -> list[tuple[int, str]]:
    """(hour, words) of every cell that knows something."""
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", response.content.decode(), re.DOTALL)
    assert len(rows) == 24
    return [
        (hour, words)
        for hour, row in enumerate(rows)
        for words in re.findall(r'<td data-s="\w+"[^>]*><span class="sr">(.*?)</span>', row)
    ]


EXPECTED = [(9, "Working, 80% busy"), (10, "Working, 30% busy, 50% of the time idle")]


def test_the_machine_s_month(month, alice, as_user):
    cells = cells_of(as_user(alice).get(f"/t/acme/instances/{month.pk}/heat/"))
    assert cells[:2] == EXPECTED
    assert [words for _hour, words in cells[2:]] in ([], ["Unknown"])


def test_the_fleet_s_month_in_the_reader_s_time_zone(month, alice, as_user):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    cells = cells_of(as_user(alice).get("/t/acme/usage/heat/"))
    assert cells[:2] == [(hour + 8, words) for hour, words in EXPECTED]


def test_a_filter_that_nothing_fits_leaves_the_month_empty(month, alice, as_user):
    page = as_user(alice).get("/t/acme/usage/heat/", {"gpu_model": "B200"}).content.decode()
    assert "No hour of these 30 days is counted yet" in page


def test_only_its_team_sees_it(month, charlie, as_user):
    assert as_user(charlie).get(f"/t/rival/instances/{month.pk}/heat/").status_code == 404
    assert "data-s" not in as_user(charlie).get("/t/rival/usage/heat/", headers={"HX-Request": "true"}).content.decode()
