"""The record of every write. Use-cases call `record` in the transaction of what they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from rest_framework.request import Request

from fleet.teams.addresses import client_ip
from fleet.teams.models import APIToken, AuditEntry, Team, User


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, and from where. `via`: page, api, agent, system."""

    user: User | None
    label: str
    via: str
    ip_address: str | None = None

    @classmethod
    def of_page(cls, request: HttpRequest) -> Actor:
        assert isinstance(request.user, User)
        return cls(request.user, request.user.get_username(), "page", client_ip(request))

    @classmethod
    def of_token(cls, request: HttpRequest, token: APIToken) -> Actor:
        """A script: it answers for itself, the person who made its token may be gone."""
        return cls(None, f"token {token.name} ({token.prefix}…)", "api", client_ip(request))

    @classmethod
    def of_call(cls, request: Request) -> Actor:
        """Whoever calls the API: a token, or a person with their session."""
        if isinstance(request.auth, APIToken):
            return cls.of_token(request, request.auth)
        return replace(cls.of_page(request), via="api")

    @classmethod
    def system(cls, label: str) -> Actor:
        return cls(None, label, "system")


def record(
    *,
    actor: Actor,
    team: Team | None,
    action: str,
    target: Model | None = None,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Writes one line. `action` is noun.verb; `old` and `new` hold only what changed, JSON-ready and free of secrets."""
    return AuditEntry.objects.create(
        team=team,
        actor=actor.user,
        actor_label=actor.label[:200],
        via=actor.via,
        ip_address=actor.ip_address,
        action=action,
        target_type=(target._meta.object_name or "") if target else "",
        target_id=str(target.pk) if target else "",
        target_label=str(target)[:200] if target else "",
        old=dict(old or {}),
        new=dict(new or {}),
    )
