"""What channels connect to when the app is ready."""

from __future__ import annotations

from fleet.alerts import outbox
from fleet.alerts.channels import leaving
from fleet.alerts.channels.routing import queue_deliveries


def register() -> None:
    outbox.receivers.append(queue_deliveries)
    leaving.connect()
