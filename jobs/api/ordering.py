"""From what a caller sent to an order, with the plan that it may be made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError

from fleet.rest.bodies import naming_fields
from fleet.teams.models import Project, Team
from jobs.book.order import Order
from jobs.plans.draft import PlanRefused, draft_of
from jobs.uploads.models import JobUpload


def order_from(team: Team, asked: Mapping[str, Any]) -> Order:
    """Raises ValidationError by field."""
    fields = {**_planned(asked), **asked}
    if slug := fields.pop("project", ""):
        fields["project"] = _project(team, slug)
    if (upload := fields.pop("upload", None)) is not None:
        fields["upload"] = upload_named(team, upload)
    if fields.get("budget_amount"):
        fields.setdefault("budget_currency", team.currency)
    return Order(**fields)


def _planned(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan's launcher fills; what was said itself goes before."""
    if not asked.get("launcher"):
        return {}
    with naming_fields(PlanRefused):
        return draft_of(plan=asked.get("plan", ""), launcher=asked["launcher"]).order_fields()


def _project(team: Team, slug: str) -> Project:
    project = Project.objects.filter(team=team, slug=slug, archived_at=None).first()
    if project is None:
        raise ValidationError({"project": _("There is no project %(slug)s.") % {"slug": slug}})
    return project


def upload_named(team: Team, pk: int) -> JobUpload:
    upload = JobUpload.objects.filter(team=team, pk=pk).first()
    if upload is None:
        raise ValidationError({"upload": _("There is no such upload.")})
    return upload
