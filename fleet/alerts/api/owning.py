"""Whose a channel is: the team's, which operators write, or one person's own, which that person writes whatever their role is."""

from __future__ import annotations

from typing import Any

from django.db.models import Model, Q
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from fleet.alerts.channels.models import Channel
from fleet.teams.models import APIToken, Membership
from fleet.teams.permissions import HasRole


def seen_by(request: Request, *, at: str = "") -> Q:
    """A team's channels, and a person's own; nobody else's, and none of a person's for a script."""
    shared = Q(**{f"{at}owner": None})
    return shared if isinstance(request.auth, APIToken) else shared | Q(**{f"{at}owner": request.user.pk})


def is_owner(request: Request, channel: Channel) -> bool:
    """A person on what is their own, in a team that they are a member of."""
    if isinstance(request.auth, APIToken) or channel.owner_id is None or channel.owner_id != request.user.pk:
        return False
    return Membership.objects.filter(team=channel.team_id, user=request.user.pk).exists()


class OperatesOrOwns(HasRole):
    """As everywhere, and people write what is their own. The view names the channel that a write is about: `channel_of_write`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method in SAFE_METHODS or not request.user.is_authenticated:
            return super().has_permission(request, view)
        return self._is_own(request, view) or super().has_permission(request, view)

    def has_object_permission(self, request: Request, view: Any, obj: Model) -> bool:
        channel = obj if isinstance(obj, Channel) else obj.channel  # type: ignore[attr-defined]  # a route
        return is_owner(request, channel) or super().has_object_permission(request, view, obj)

    def _is_own(self, request: Request, view: Any) -> bool:
        channel = view.channel_of_write()
        return channel is not None and is_owner(request, channel)
