"""Whoever reads a channel, and what they may do about what they read. Looked up each time, since people leave and roles change."""

from __future__ import annotations

from fleet.alerts.channels.models import Channel
from fleet.teams.models import Membership, Role


def may_act(channel: Channel) -> bool:
    """Whether whoever reads the channel may act on alerts: people by their role now; what the team made its channel, the team answers for."""
    if channel.owner is None:
        return True
    membership = Membership.objects.filter(team=channel.team_id, user=channel.owner).first()
    return membership is not None and membership.can(Role.OPERATOR)


def has_reader(channel: Channel) -> bool:
    """A person's own channel ends with their membership, whatever rows are left of it."""
    if channel.owner is None:
        return True
    return channel.owner.is_active and Membership.objects.filter(team=channel.team_id, user=channel.owner).exists()
