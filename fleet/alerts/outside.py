"""Whether what goes out goes out: messages and operations wait for a worker of their own, which cannot tell of its own death."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min, Q

from fleet.alerts.channels.models import Delivery
from fleet.alerts.channels.picking import WAITING
from fleet.alerts.findings import URGENT
from fleet.alerts.snapshot import Trouble
from fleet.inventory.operations.models import OPEN_STATES, Operation

# Longer than servers that hang can keep all places of the worker.
LATE = timedelta(minutes=5)


def sending_late(now: datetime) -> list[Trouble]:
    """Messages that nothing holds back, and nobody sends. What a channel waits for (its pace, a failing service, a person) is its own."""
    before = now - LATE
    free = Q(channel__hold_until=None) | Q(channel__hold_until__lte=before)
    unheld = Q(channel__claimed_until=None) | Q(channel__claimed_until__lte=before)
    waiting = Delivery.objects.filter(
        free, unheld, state__in=WAITING, next_attempt_at__lte=before, channel__enabled=True, channel__broken=""
    )
    return trouble("sending", waiting.aggregate(at=Min("next_attempt_at"))["at"])


def operations_late(now: datetime) -> list[Trouble]:
    before = now - LATE
    unheld = Q(claimed_until=None) | Q(claimed_until__lte=before)
    waiting = Operation.objects.filter(unheld, state__in=OPEN_STATES, next_at__lte=before)
    return trouble("operations", waiting.aggregate(at=Min("next_at"))["at"])


def trouble(part: str, since: datetime | None) -> list[Trouble]:
    return [] if since is None else [Trouble(part, URGENT, since=since)]
