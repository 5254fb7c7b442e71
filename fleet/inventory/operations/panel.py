"""Operations on the page of a machine: how far one is, for everybody; what can be asked for, for those who may."""

from __future__ import annotations

from datetime import datetime

from fleet.inventory.models import Instance
from fleet.inventory.operations.preview import Preview, previews
from fleet.inventory.operations.progress import newest_of
from fleet.inventory.operations.refusals import OperationOpen, Refused
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role


def acts_context(request: TeamRequest, instance: Instance, *, now: datetime) -> Context:
    may_act = request.membership.can(Role.OPERATOR) and not instance.gone_at
    found = previews(instance, now=now) if may_act else []
    return {
        "progress": newest_of(instance.pk, now=now),
        "may_act": may_act,
        "previews": found,
        "blocked": common_refusal(found),
    }


def common_refusal(found: list[Preview]) -> Refused | None:
    """Why nothing at all can be done, where that has one reason; it is said once."""
    refusals = [told.refusal for told in found if told.refusal]
    alike = len(refusals) == len(found) and len({refusal.code for refusal in refusals}) == 1
    return refusals[0] if refusals and alike and not isinstance(refusals[0], OperationOpen) else None
