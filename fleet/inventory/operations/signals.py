"""What the rooms above may hear of operations, after the commit: `operation` is the row as it was written."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.dispatch import Signal

from fleet.inventory.operations.models import Operation

operation_changed = Signal()


def announce(operation: Operation) -> None:
    """Robust: a listener that fails must not undo what a provider was told."""
    transaction.on_commit(partial(operation_changed.send_robust, sender=Operation, operation=operation))
