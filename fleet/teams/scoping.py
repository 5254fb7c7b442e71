"""The base of every API view. Rows of other teams are filtered out before a view sees them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ReadOnlyModelViewSet

from fleet.rest.filters import refuse_unknown
from fleet.teams.idempotency import once, wanted_key
from fleet.teams.models import Role, Team
from fleet.teams.permissions import Access

M = TypeVar("M", bound=Model)


class ApiView(APIView):
    """Base of every view of the API."""

    required_role: ClassVar[Role] = Role.VIEWER
    # Names of the query parameters it takes; any other is refused.
    known_parameters: ClassVar[Collection[str]] = ()
    # Whether its POST only asks, so that a viewer may send it.
    changes_nothing: ClassVar[bool] = False
    # Whether a write that is sent again does nothing more, so that it needs no Idempotency-Key.
    is_once_by_itself: ClassVar[bool] = False

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Times are read and written in UTC here, whatever zone a person's pages are shown in.
        with timezone.override(UTC):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        refuse_unknown(request, self.get_known_parameters())
        key = None if self.changes_nothing or self.is_once_by_itself else wanted_key(request)
        name = (request.method or "").lower()
        if key is not None and hasattr(self, name):
            setattr(self, name, once(getattr(self, name), request=request, key=key))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        # Figures of a team belong in no cache on the way.
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer

    def get_known_parameters(self) -> Collection[str]:
        return self.known_parameters

    def perform_authentication(self, request: Request) -> None:
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            # Guesses count against the address they come from.
            super().check_throttles(request)
            raise

    def check_permissions(self, request: Request) -> None:
        # Before the permission, so that refused requests count too.
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Counted already, in check_permissions."""


class TeamRows(ApiView, ReadOnlyModelViewSet[M]):
    """A list of what teams own, and one row of it. `team_path` is the way from the row to its team."""

    team_path: ClassVar[str] = "team"
    orderings: ClassVar[tuple[str, ...]] = ("id",)
    shared_parameters = (
        OpenApiParameter(
            "team",
            description="Address (slug) of one of your teams. Without it a session sees all of them but the sandbox, "
            "whose figures count nowhere else; a token sees its own team always.",
        ),
    )
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[M]:
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows.none()
        return rows.filter(**{f"{self.team_path}__in": self.visible_team_ids()})

    def team_id_of(self, row: Any) -> int:
        for name in self.team_path.split("__"):
            row = getattr(row, name)
        return row.pk if isinstance(row, Team) else row

    def visible_team_ids(self) -> list[int]:
        access, role = Access.of_request(self.request), self.required_role
        if self.detail:
            return [team.pk for team in access.teams if access.roles[team.pk].rank >= role.rank]
        return access.team_ids(role=role, slug=self.request.query_params.get("team"))

    def get_known_parameters(self) -> Collection[str]:
        if self.detail:
            return self.known_parameters
        filters = getattr(self, "filterset_class", None)
        own = filters.base_filters if filters else ()
        return {*own, *self.known_parameters, "team", "limit", "cursor", "ordering"}
