"""Whether a policy's office hours last now: while they do, what is idle is told and not stopped."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.hours import office_ends
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.office import hours_of


def office_until(policy: IdlePolicy | None, now: datetime) -> datetime | None:
    """When the office hours end that last now; None = none do."""
    hours = hours_of(policy) if policy is not None else None
    return office_ends(hours, now) if hours is not None else None
