"""A month of a team begins and ends in the team's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from fleet.costs.month import Month
from fleet.teams.models import Team

NOW = datetime(2026, 11, 30, 20, tzinfo=UTC)


def test_it_is_the_month_that_the_team_is_in():
    assert Month.of(Team(time_zone="UTC"), now=NOW).first == date(2026, 11, 1)
    shanghai = Month.of(Team(time_zone="Asia/Shanghai"), now=NOW)
    assert (shanghai.first, shanghai.end, shanghai.is_current) == (date(2026, 12, 1), date(2026, 12, 2), True)
    assert shanghai.begins_at == datetime(2026, 11, 30, 16, tzinfo=UTC)


def test_a_month_with_a_change_of_clocks_is_an_hour_longer():
    month = Month.of(Team(time_zone="America/New_York"), now=NOW)
    elapsed = month.ends_at.astimezone(UTC) - month.begins_at.astimezone(UTC)
    assert elapsed == timedelta(days=30, hours=1)


@pytest.mark.parametrize("name", ["", "2026-13", "2030-01", "November", "2026-11-30", "0001-01", "2009-12"])
def test_what_is_no_past_month_is_the_present_one(name):
    assert str(Month.of(Team(time_zone="UTC"), now=NOW, name=name)) == "2026-11"


def test_a_past_month_is_over():
    month = Month.of(Team(time_zone="UTC"), now=NOW, name="2026-02")
    assert (month.end, month.days, month.is_current, str(month.before)) == (date(2026, 3, 1), 28, False, "2026-01")
