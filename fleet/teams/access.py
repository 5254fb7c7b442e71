"""Who may see and do what. A team that a person is no member of does not exist for them: 404 everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from fleet.teams.models import Membership, Role, Team, User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class PersonRequest(HttpRequest):
    """A request of somebody signed in: LoginRequiredMiddleware has checked that."""

    user: User
    htmx: HtmxDetails


class TeamRequest(PersonRequest):
    """A request under /t/<team>/: TeamMiddleware has checked the membership."""

    team: Team
    membership: Membership


def teams_visible_to(user: User | AnonymousUser) -> QuerySet[Team]:
    """The person's own teams, and the sandbox, which everybody may look at."""
    if not isinstance(user, User) or not user.is_active:
        return Team.objects.none()
    mine = Team.objects.filter(memberships__user=user)
    if user.hides_sandbox:
        return mine
    return mine.union(Team.objects.filter(is_sandbox=True)).order_by("is_sandbox", "name")


def membership_in(*, user: User | AnonymousUser, slug: str) -> Membership | None:
    """The membership, an unsaved viewer's one for the sandbox, or None."""
    if not isinstance(user, User) or not user.is_active:
        return None
    found = Membership.objects.select_related("team").filter(user=user, team__slug=slug).first()
    if found:
        return found
    # Not saved: nobody is a member of the sandbox, so nobody can be removed from it or become its admin.
    sandbox = Team.objects.filter(slug=slug, is_sandbox=True).first()
    return Membership(team=sandbox, user=user, role=Role.VIEWER) if sandbox else None


def requires(role: Role) -> Callable[[View], View]:
    """A view for members with at least this role; others of the team get 403 with the reason.

    TeamMiddleware asks for an operator where a view that changes something does not say.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: TeamRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.membership.can(role):
                raise PermissionDenied(role.value)
            return view(request, *args, **kwargs)

        guarded.required_role = role  # type: ignore[attr-defined]
        return guarded  # type: ignore[return-value]

    return decorate


def user_group(user_id: int) -> str:
    """The channel-layer group of everything that a person has open."""
    return f"user.{user_id}"


def announce_access_change(user: User) -> None:
    """Tells open connections of the person to check again, once the change is committed.

    A broker that is away must not undo the change: connections also check by themselves.
    """
    message = {"type": "access.changed", "user": user.pk}
    transaction.on_commit(
        lambda: async_to_sync(get_channel_layer().group_send)(user_group(user.pk), message), robust=True
    )
