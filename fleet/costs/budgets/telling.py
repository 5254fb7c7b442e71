"""Which owners a message about a planned act has reached: nothing is done to a machine whose owner was not told."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.costs.budgets.acting import subject_of
from fleet.costs.budgets.models import Budget
from fleet.costs.budgets.words import PLANNED
from fleet.inventory.plans.actions import note_told
from fleet.inventory.plans.models import PlannedAction, PlannedActionState


def note_deliveries() -> int:
    """Writes down which owners a message about a planned act has reached. Returns how many."""
    waiting = PlannedAction.objects.filter(
        state=PlannedActionState.PLANNED, notified_at=None, source__startswith="budget:"
    ).select_related("instance", "team")
    return sum(_note_delivery(action) for action in waiting)


def _note_delivery(action: PlannedAction) -> bool:
    """To whoever has a channel of their own, by that; to others by one of the team's."""
    owner_id = action.instance.owner_id
    own = (
        Channel.objects.filter(team=action.team_id, owner=owner_id, enabled=True)
        if owner_id
        else Channel.objects.none()
    )
    heard_by = Q(channel__owner=owner_id) if own.exists() else Q(channel__owner=None)
    sent = Delivery.objects.filter(
        heard_by, alert__team=action.team_id, alert__cause=PLANNED, alert__subject=subject_of(action),
        state=DeliveryState.SENT, sent_at__isnull=False,
    )  # fmt: skip
    at = sent.order_by("sent_at").values_list("sent_at", flat=True).first()
    if at is None:
        return False
    hours = (
        Budget.objects.filter(pk=int(action.source.partition(":")[2])).values_list("notice_hours", flat=True).first()
    )
    return note_told(action=action, at=at, notice=timedelta(hours=hours or 0))
