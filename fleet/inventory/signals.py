"""What the rooms above may hear of machines, after the commit."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.dispatch import Signal

from fleet.inventory.models import Instance

# People said something else of the machine: its owner, project or labels.
machine_described = Signal()


def announce_described(instance: Instance) -> None:
    """Robust: a listener that fails must not undo what was said."""
    transaction.on_commit(partial(machine_described.send_robust, sender=Instance, instance=instance))
