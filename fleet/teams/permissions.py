"""What a caller of the API may see and do: the teams they are in, and the role they have in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from fleet.rest.problems import not_found
from fleet.teams.access import teams_visible_to
from fleet.teams.models import APIToken, Membership, Role, Scope, Team


@dataclass(frozen=True, slots=True)
class Access:
    """The teams that a caller sees and the role they have in each."""

    teams: tuple[Team, ...]
    roles: dict[int, Role]
    is_token: bool

    def team_ids(self, *, role: Role = Role.VIEWER, slug: str | None = None) -> list[int]:
        """Teams in which the caller has at least this role.

        Without a slug the sandbox is left out for people: its figures count nowhere else.
        """
        return [
            team.pk
            for team in self.teams
            if self.roles[team.pk].rank >= role.rank
            and (team.slug == slug if slug is not None else self.is_token or not team.is_sandbox)
        ]

    @classmethod
    def of_request(cls, request: Request) -> Access:
        """Reads it once per request."""
        found: Access | None = getattr(request, "rackrent_access", None)
        if found is None:
            found = cls._of_token(request.auth) if isinstance(request.auth, APIToken) else cls._of_session(request)
            request.rackrent_access = found  # type: ignore[attr-defined]
        return found

    @classmethod
    def _of_token(cls, token: APIToken) -> Access:
        return cls((token.team,), {token.team_id: Scope(token.scope).role}, is_token=True)

    @classmethod
    def _of_session(cls, request: Request) -> Access:
        teams = tuple(sorted(teams_visible_to(request.user), key=lambda team: team.pk))
        own = dict(Membership.objects.filter(user=request.user.pk).values_list("team_id", "role"))
        return cls(teams, {team.pk: Role(own.get(team.pk, Role.VIEWER)) for team in teams}, is_token=False)


class HasRole(BasePermission):
    """Reads need the view's role, writes at least an operator's, in one of the caller's teams; `?team=` names which."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.auth is None and not request.user.is_authenticated:
            return False
        access = Access.of_request(request)
        slug = request.query_params.get("team")
        if slug is not None and not access.team_ids(slug=slug):
            raise not_found("team", _("You are in no team with the address “%(slug)s”.") % {"slug": slug[:60]})
        role = needed_role(request, view)
        # Whoever is in no team may read, and finds nothing.
        if role is not Role.VIEWER and not any(
            access.roles[team.pk].rank >= role.rank for team in access.teams if slug in {None, team.slug}
        ):
            raise PermissionDenied(_("This needs the role %(role)s or a token of that scope.") % {"role": role.label})
        return True

    def has_object_permission(self, request: Request, view: Any, obj: Model) -> bool:
        """In the row's own team: an operator elsewhere is no operator here."""
        role = Access.of_request(request).roles.get(view.team_id_of(obj))
        return role is not None and role.rank >= needed_role(request, view).rank


def needed_role(request: Request, view: Any) -> Role:
    """`write_role`: what a write needs, if more than an operator. `changes_nothing`: a view whose POST only carries a question that is too long for an address."""
    reads: Role = getattr(view, "required_role", Role.VIEWER)
    asks = request.method in SAFE_METHODS or (request.method == "POST" and getattr(view, "changes_nothing", False))
    writes: Role = getattr(view, "write_role", Role.OPERATOR)
    return reads if asks else max(reads, writes, key=lambda role: role.rank)


def one_team(request: Request, *, role: Role = Role.VIEWER) -> Team:
    """The team that is meant, where no row says it: the token's, the only one, or `?team=`. Raises ValidationError."""
    access = Access.of_request(request)
    ids = access.team_ids(role=role, slug=request.query_params.get("team"))
    if len(ids) != 1:
        raise ValidationError({"team": _("Name the team, as in ?team=acme: you are in several or in none.")})
    return next(team for team in access.teams if team.pk == ids[0])
