"""The very last look, right before each call: what the inventory is about to tell a provider in a stop's name is judged once more."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.shutdown.fresh import speaks_against
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import InUse

OURS = "idle-stop:"


def in_use(operation: Operation, now: datetime) -> InUse | None:
    """Of an operation of an idle stop, whose machine is in use again. Not knowing withholds nothing: it was ordered on what was known."""
    if operation.instance is None or not operation.idempotency_key.startswith(OURS):
        return None
    return InUse() if speaks_against(operation.instance, now=now) == "active" else None
