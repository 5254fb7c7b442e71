"""Beside a machine: whether it is idle and why, and the stop under way with a person's word against it."""

from __future__ import annotations

from django.utils import timezone

from fleet.idle.shutdown.models import IdleStop
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import Instance
from fleet.pages.idle.rows import reasons_of
from fleet.pages.idle.stops import RELATED, UNDER_WAY, UnderWay, planned_acts
from fleet.panels import Context
from fleet.providers.base import InstanceState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role

REASONS_SHOWN = 8


def machine_idle(request: TeamRequest, instance: Instance) -> Context | None:
    """None for a machine that is no more."""
    if instance.gone_at or instance.state == InstanceState.TERMINATED:
        return None
    now = timezone.now()
    stop = IdleStop.objects.filter(UNDER_WAY, instance=instance).select_related(*RELATED).first()
    verdict = IdleVerdictRow.objects.filter(instance=instance).first()
    return {
        "instance": instance,
        "verdict": verdict,
        "reasons": reasons_of(verdict, REASONS_SHOWN),
        "window_seconds": 60 * verdict.window_minutes if verdict else None,
        "one": UnderWay(stop, now) if stop else None,
        "acts": planned_acts(request.membership, now=now, instance=instance),
        "may_act": request.membership.can(Role.OPERATOR),
    }
