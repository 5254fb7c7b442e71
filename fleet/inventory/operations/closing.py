"""How people end what cannot be proved: with a reason that is kept. Rackrent itself never gives up."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from fleet.inventory.operations.journal import fail_over
from fleet.inventory.operations.models import Operation
from fleet.teams.audit import Actor


@transaction.atomic
def abandon_operation(*, actor: Actor, operation: Operation, reason: str, now: datetime | None = None) -> bool:
    """Nobody asks the provider about it any more; the machine is shown as readings show it. False: it had ended already."""
    done = fail_over(operation, "abandoned", reason, at=now or timezone.now(), event="abandoned", actor=actor)
    if done:
        operation.refresh_from_db()
    return done
