"""A policy's office hours: while they last, what is idle is told and not stopped."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from fleet.idle.hours import OfficeHours, office_ends
from fleet.idle.policies.models import IdlePolicy


def hours_of(policy: IdlePolicy) -> OfficeHours | None:
    """None: it names none, and every hour is as good as another."""
    if not policy.office_days or policy.office_from is None or policy.office_until is None:
        return None
    zone = ZoneInfo(policy.time_zone or policy.team.time_zone)
    return OfficeHours(frozenset(policy.office_days), policy.office_from, policy.office_until, zone, policy.holidays)


def office_until(policy: IdlePolicy | None, now: datetime) -> datetime | None:
    """When the office hours end that last now; None = none do."""
    hours = hours_of(policy) if policy is not None else None
    return office_ends(hours, now) if hours is not None else None
