"""The machines that a caller names."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request

from fleet.inventory.models import Instance
from fleet.rest.problems import not_found
from fleet.teams.models import Role
from fleet.teams.permissions import Access


def machines_named(request: Request, ids: Sequence[int]) -> list[Instance]:
    """In their order, all of one team in which the caller operates. Raises 404, 403 or 400."""
    roles = Access.of_request(request).roles
    rows = {row.pk: row for row in Instance.objects.filter(pk__in=ids, team__in=roles).select_related("team")}
    if missing := [pk for pk in ids if pk not in rows]:
        raise not_found("machines", _("Not found: %(ids)s.") % {"ids": missing[0]})
    if any(roles[row.team_id].rank < Role.OPERATOR.rank for row in rows.values()):
        raise PermissionDenied(
            _("This needs the role %(role)s or a token of that scope.") % {"role": Role.OPERATOR.label}
        )
    if len({row.team_id for row in rows.values()}) > 1:
        raise ValidationError({"machines": _("These machines belong to several teams: a job runs on those of one.")})
    return [rows[pk] for pk in ids]
