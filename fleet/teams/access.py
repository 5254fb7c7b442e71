"""Who may see and do what. A team that a person is no member of does not exist for them: 404 everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from fleet.teams.models import Membership, Role, Team, User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class TeamRequest(HttpRequest):
    """A request under /t/<team>/: TeamMiddleware has checked the membership."""

    user: User
    htmx: HtmxDetails
    team: Team
    membership: Membership


def teams_visible_to(user: User | AnonymousUser) -> QuerySet[Team]:
    """The person's own teams, and the sandbox, which everybody may look at."""
    if not isinstance(user, User) or not user.is_active:
        return Team.objects.none()
    return Team.objects.filter(memberships__user=user).union(Team.objects.filter(is_sandbox=True))


def membership_in(*, user: User | AnonymousUser, slug: str) -> Membership | None:
    """The membership, an unsaved viewer's one for the sandbox, or None."""
    if not isinstance(user, User) or not user.is_active:
        return None
    found = Membership.objects.select_related("team").filter(user=user, team__slug=slug).first()
    if found:
        return found
    sandbox = Team.objects.filter(slug=slug, is_sandbox=True).first()
    return Membership(team=sandbox, user=user, role=Role.VIEWER) if sandbox else None


def requires(role: Role) -> Callable[[View], View]:
    """A view for members with at least this role; others of the team get 403 with the reason."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: TeamRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.membership.can(role):
                raise PermissionDenied(role.value)
            return view(request, *args, **kwargs)

        return guarded  # type: ignore[return-value]

    return decorate
