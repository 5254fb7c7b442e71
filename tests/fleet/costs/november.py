"""A November: now is 16 Nov 00:00 UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime

START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def november(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


def on(day: int) -> date:
    return date(2026, 11, day)
