"""A policy's office hours, as the clock arithmetic takes them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from fleet.idle.hours import OfficeHours
from fleet.idle.policies.models import IdlePolicy


def hours_of(policy: IdlePolicy) -> OfficeHours | None:
    """None: it has none, and its machines are stopped at any hour. Needs `policy.team` where it names no time zone of its own."""
    if not policy.office_days or policy.office_from is None or policy.office_until is None:
        return None
    return OfficeHours(
        frozenset(policy.office_days),
        policy.office_from,
        policy.office_until,
        ZoneInfo(policy.time_zone or policy.team.time_zone),
        policy.holidays,
    )
