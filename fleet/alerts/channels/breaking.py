"""A channel of the team that takes nothing any more is an alert itself: the other channels and the inbox say so until it works again.

Whoever writes alerts locks the team before any channel or delivery, or two of them could wait for each other.
"""

from __future__ import annotations

from datetime import datetime

from fleet.alerts.channels.models import Channel
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import WARNING

CAUSE = "channel.broken"


def works_no_more(channel: Channel, code: str, now: datetime) -> None:
    """Of a person's own channel nobody else knows."""
    if channel.owner_id is None:
        values = {"channel": channel.name, "code": code}
        raise_event(team=channel.team, cause=CAUSE, subject=subject_of(channel), severity=WARNING, values=values, now=now)  # fmt: skip


def works_again(channel: Channel, now: datetime, *, why: str = "evidence") -> None:
    if channel.owner_id is None and channel.broken_at is not None:
        clear_event(team=channel.team, cause=CAUSE, subject=subject_of(channel), now=now, why=why)


def subject_of(channel: Channel) -> str:
    return f"channel:{channel.pk}"
