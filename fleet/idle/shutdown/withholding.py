"""The very last look, right before each call: what the inventory is about to tell a provider in a stop's name is judged once more."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.shutdown.fresh import speaks_against
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import InUse, Refused, UseUnknown

OURS = "idle-stop:"


def in_use(operation: Operation, now: datetime) -> Refused | None:
    """Of an operation of an idle stop whose machine is in use again, or, while its provider has done nothing yet, is not known to be idle any more.

    It may have waited for hours for a worker or a provider. What was sent may have been done, and a machine on its way down says nothing.
    """
    if operation.instance is None or not operation.idempotency_key.startswith(OURS):
        return None
    word = speaks_against(operation.instance, now=now)
    if word == "active":
        return InUse()
    untouched = not operation.uncertain and operation.accepted_at is None
    return UseUnknown() if word == "unknown" and untouched else None
