"""Several hours in a row make an alert, several calm ones end it, and a day without evidence says nothing any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.quality.neighbours.standing import HOUR, Now, standing

NEWEST = datetime(2026, 11, 17, 8, tzinfo=UTC)


def scores(*values: int | None) -> dict[datetime, int]:
    """The last one is of the newest hour."""
    first = NEWEST - (len(values) - 1) * HOUR
    return {first + place * HOUR: value for place, value in enumerate(values) if value is not None}


@pytest.mark.parametrize(
    ("hours", "now"),
    [
        ((80, 80, 80), Now.CROWDED),
        # One that is neither breaks no row.
        ((80, 80, 30, 50), Now.CROWDED),
        ((80, 80), Now.BETWEEN),
        ((80, 80, 10, 80), Now.BETWEEN),
        # An hour that could not be judged does.
        ((80, 80, None, 80), Now.BETWEEN),
        ((80, 80, 80, None), Now.BETWEEN),
        ((80, 80, 80, 0, 0), Now.BETWEEN),
        ((80, 80, 80, 0, 0, 10), Now.CALM),
        ((), Now.SILENT),
    ],
)
def test_the_last_hours_together(hours, now):
    assert standing(scores(*hours), newest=NEWEST).now is now


def test_a_row_says_since_when_and_how_much():
    found = standing(scores(0, 90, 70, 35, 85), newest=NEWEST)
    assert (found.mean, found.hours, found.since, found.is_loud) == (70, 4, NEWEST - 3 * HOUR, True)


def test_evidence_of_more_than_a_day_ago_is_none():
    old = {moment - timedelta(hours=24): score for moment, score in scores(80, 80, 80).items()}
    assert standing(old, newest=NEWEST).now is Now.SILENT
