"""Quiet hours and digests on the reader's own clock, clocks that change included."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fleet.alerts.channels.timing import Hours

BERLIN, SHANGHAI, KATHMANDU = (ZoneInfo(name) for name in ("Europe/Berlin", "Asia/Shanghai", "Asia/Kathmandu"))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NIGHT: dict[str, Any] = {"quiet_from": time(22), "quiet_until": time(7)}


@pytest.mark.parametrize(
    ("hours", "now", "due"),
    [
        (Hours(BERLIN), "2026-11-30T02:00", "2026-11-30T02:00"),
        (Hours(BERLIN, **NIGHT), "2026-11-30T12:00", "2026-11-30T12:00"),
        (Hours(BERLIN, **NIGHT), "2026-11-30T21:00", "2026-12-01T06:00"),
        (Hours(BERLIN, **NIGHT), "2026-11-30T02:00", "2026-11-30T06:00"),
        (Hours(BERLIN, **NIGHT), "2026-11-30T06:00", "2026-11-30T06:00"),
        (Hours(SHANGHAI, **NIGHT), "2026-11-30T14:30", "2026-11-30T23:00"),
        (Hours(KATHMANDU, quiet_from=time(12), quiet_until=time(13)), "2026-11-30T06:30", "2026-11-30T07:15"),
        (Hours(BERLIN, quiet_from=time(9), quiet_until=time(9)), "2026-11-30T08:30", "2026-11-30T08:30"),
        # The clock goes forward on 29 March: 02:30 is not there, and the quiet ends at 03:30, which is 01:30 UTC.
        (Hours(BERLIN, quiet_from=time(22), quiet_until=time(2, 30)), "2026-03-28T23:00", "2026-03-29T01:30"),
        (Hours(BERLIN, **NIGHT), "2026-03-28T22:00", "2026-03-29T05:00"),
        # It goes back on 25 October: 02:30 comes twice.
        (Hours(BERLIN, quiet_from=time(22), quiet_until=time(2, 30)), "2026-10-24T22:00", "2026-10-25T00:30"),
        (Hours(BERLIN, quiet_from=time(22), quiet_until=time(2, 30)), "2026-10-25T01:10", "2026-10-25T01:30"),
        (Hours(BERLIN, **NIGHT), "2026-10-24T21:00", "2026-10-25T06:00"),
    ],
)
def test_quiet_hours(hours, now, due):
    assert hours.due(at(now)) == at(due)


@pytest.mark.parametrize(
    ("hours", "now", "due"),
    [
        (Hours(BERLIN, "hourly"), "2026-11-30T12:00", "2026-11-30T13:00"),
        (Hours(BERLIN, "hourly"), "2026-11-30T12:59", "2026-11-30T13:00"),
        (Hours(BERLIN, "daily"), "2026-11-30T07:59", "2026-11-30T08:00"),
        (Hours(BERLIN, "daily"), "2026-11-30T08:00", "2026-12-01T08:00"),
        (Hours(BERLIN, "daily"), "2026-10-24T12:00", "2026-10-25T08:00"),
        (Hours(BERLIN, "daily"), "2026-03-28T12:00", "2026-03-29T07:00"),
        (Hours(SHANGHAI, "weekly"), "2026-11-30T00:59", "2026-11-30T01:00"),
        (Hours(SHANGHAI, "weekly"), "2026-11-30T01:00", "2026-12-07T01:00"),
        (Hours(BERLIN, "hourly", **NIGHT), "2026-11-30T21:30", "2026-12-01T06:00"),
    ],
)
def test_digests(hours, now, due):
    assert hours.due(at(now)) == at(due)


def test_what_is_urgent_breaks_the_quiet():
    assert Hours(BERLIN, **NIGHT).due(at("2026-11-30T23:00"), breaks_quiet=True) == at("2026-11-30T23:00")
