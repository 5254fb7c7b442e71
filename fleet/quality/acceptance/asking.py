"""Having machines tested: by hand, and once by itself when a machine is fresh and nobody works on it yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.inventory.models import Hold, Instance
from fleet.providers.base import InstanceState, Tenancy
from fleet.quality.models import AcceptanceReport
from fleet.teams.audit import Actor
from fleet.telemetry.actions.ask import HEARD_WITHIN, OPEN, ActionError, ask_action
from fleet.telemetry.actions.models import AgentAction, AgentActionName, AgentActionState
from fleet.telemetry.models import GpuLatest

MOST_SECONDS = 120
# The next heartbeat is 15 s away; an agent that misses eight is not there.
LIFETIME = timedelta(minutes=2)
FRESH_FOR = timedelta(days=2)
# It refuses while its GPUs work, and may be busy installing: then later, but not for ever.
TRIES, AGAIN_AFTER = 3, timedelta(minutes=30)
BY_ITSELF = Actor.system("acceptance")
# Whose GPUs are nobody else's: a test on shared ones would disturb, and be disturbed by, other tenants.
OWN_GPUS = (Tenancy.DEDICATED_HOST, Tenancy.DEDICATED_GPU)


def ask_acceptance(*, actor: Actor, instance: Instance, when_busy: bool, now: datetime) -> AgentAction:
    """Raises ActionError, ActionOpenError."""
    options = {"most_seconds": MOST_SECONDS, "when_busy": when_busy}
    return ask_action(
        actor=actor, instance=instance, name=AgentActionName.ACCEPT, options=options, now=now, lifetime=LIFETIME
    )


def ask_fresh(*, now: datetime) -> int:
    """Ask every machine that is due. Returns how many were asked."""
    asked = 0
    for machine in fresh(now=now).select_related("team"):
        try:
            ask_acceptance(actor=BY_ITSELF, instance=machine, when_busy=False, now=now)
        except ActionError:
            # Its agent fell silent, or a person asked, since the query.
            continue
        asked += 1
    return asked


def fresh(*, now: datetime) -> QuerySet[Instance]:
    """Managed machines with GPUs of their own, new here, untested, without work since, and whose agent offers the test now."""
    actions = AgentAction.objects.filter(instance=OuterRef("pk"), name=AgentActionName.ACCEPT)
    settled = actions.filter(Q(state__in=(*OPEN, AgentActionState.DONE)) | Q(ended_at__gte=now - AGAIN_AFTER))
    failed = actions.filter(state__in=(AgentActionState.FAILED, AgentActionState.LOST)).order_by("-pk")
    # The third of the failed ones: counted without a GROUP BY.
    worn_out = failed.values("pk")[TRIES - 1 : TRIES]
    working = GpuLatest.objects.filter(gpu__instance=OuterRef("pk")).filter(
        Q(busy_at__gte=OuterRef("agent__enrolled_at")) | Q(process_count__gt=0)
    )
    return Instance.objects.filter(
        ~Exists(settled),
        ~Exists(worn_out),
        ~Exists(working),
        ~Exists(Hold.objects.filter(instance=OuterRef("pk"), ended_at=None)),
        ~Exists(AcceptanceReport.objects.filter(instance=OuterRef("pk"))),
        managed=True,
        gone_at=None,
        state=InstanceState.RUNNING,
        tenancy__in=OWN_GPUS,
        agent__revoked_at=None,
        agent__enrolled_at__gte=now - FRESH_FOR,
        agent__heartbeat_at__gte=now - HEARD_WITHIN,
        agent__actions__contains=[AgentActionName.ACCEPT],
    ).order_by("pk")
