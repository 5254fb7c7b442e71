"""The base of API views that change something. A write is a body, a use-case, and the row as a read answers it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.problems import not_found
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.teams.permissions import Access
from fleet.teams.scoping import TeamRows
from fleet.teams.throttles import AnonymousThrottle, TokenThrottle, UserThrottle, WriteThrottle

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Model)


class WritableRows(TeamRows[M]):
    """A list that callers may change. Its actions call use-cases; the role is checked in the row's own team, before.

    Actions: `create` answers 201 and the new row, `partial_update` 200 and the row, `destroy` 204; another action what `answers` says.
    """

    http_method_names = ["get", "post", "patch", "delete", "head"]
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, WriteThrottle)
    # action -> what is sent to it.
    bodies: ClassVar[Mapping[str, type[serializers.Serializer[Any]]]] = {}
    # action -> what it answers, where that is not the row.
    answers: ClassVar[Mapping[str, tuple[int, type[serializers.Serializer[Any]]]]] = {}

    def get_known_parameters(self) -> Collection[str]:
        """A write is told what to do in its body."""
        return super().get_known_parameters() if self.request.method in SAFE_METHODS else {"team"}

    def body(self, request: Request) -> dict[str, Any]:
        """What was sent, checked. Raises ValidationError."""
        serializer = self.bodies[self.action](data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def actor(self, request: Request) -> Actor:
        return Actor.of_call(request)

    def named(self, rows: QuerySet[R], *, field: str, pk: int) -> R:
        """The row that the body names in `field`, of a model with a `team`. Raises 404 for what the caller does not see, 403 where they only read."""
        roles = Access.of_request(self.request).roles
        found = rows.filter(pk=pk, team__in=roles).first()
        if found is None:
            raise not_found(field, _("Not found: %(ids)s.") % {"ids": pk})
        if roles[found.team_id].rank < Role.OPERATOR.rank:  # type: ignore[attr-defined]  # every such model has it
            raise PermissionDenied(
                _("This needs the role %(role)s or a token of that scope.") % {"role": Role.OPERATOR.label}
            )
        return found

    def answer(self, row: M, code: int = status.HTTP_200_OK) -> Response:
        return Response(self.get_serializer(row).data, status=code)
