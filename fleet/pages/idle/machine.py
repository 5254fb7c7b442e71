"""Beside a machine: whether it is idle and why, how it is judged, and the stop under way with a person's word against it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from fleet.idle.policies.covering import JudgedBy, judged_by
from fleet.idle.policies.models import UseMode
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import Instance
from fleet.pages.idle.proofs import Proof, proofs_of
from fleet.pages.idle.rows import reasons_of
from fleet.pages.idle.stops import RELATED, UNDER_WAY, Planned, UnderWay, planned_acts
from fleet.panels import Context
from fleet.providers.base import InstanceState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role

REASONS_SHOWN = 8


@dataclass(frozen=True)
class Judged:
    verdict: IdleVerdictRow | None
    by: JudgedBy

    @property
    def reasons(self) -> list[str]:
        return reasons_of(self.verdict, REASONS_SHOWN)

    @property
    def mode_word(self) -> str:
        return str(UseMode(self.by.mode.value).label)

    @property
    def window_seconds(self) -> float:
        return self.by.window.total_seconds()


def machine_idle(request: TeamRequest, instance: Instance) -> Context | None:
    """None for a machine that is no more."""
    if instance.gone_at or instance.state == InstanceState.TERMINATED:
        return None
    now = timezone.now()
    stop = IdleStop.objects.filter(UNDER_WAY, instance=instance).select_related(*RELATED).first()
    acts: list[Planned] = planned_acts(request.team, now=now, instance=instance)
    proofs: list[Proof] = proofs_of([stop], now=now) if stop else []
    return {
        "instance": instance,
        "judged": Judged(IdleVerdictRow.objects.filter(instance=instance).first(), judged_by([instance])[instance.pk]),
        "one": UnderWay(stop, now) if stop else None,
        "proof": proofs[0] if proofs else None,
        "acts": acts,
        "may_act": request.membership.can(Role.OPERATOR),
    }
