"""What the rooms above may hear of actions, after the commit: `action` is the row as it was written."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.dispatch import Signal

from fleet.telemetry.actions.models import AgentAction

# Done, failed or lost.
action_ended = Signal()


def announce_end(action: AgentAction) -> None:
    """Robust: a listener that fails must not have the agent tell it again."""
    transaction.on_commit(partial(action_ended.send_robust, sender=AgentAction, action=action))
