"""The one way from what happens to alerts to those who tell people of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fleet.alerts.models import AlertEvent

# Called in the transaction that wrote the events. What a receiver writes is kept or lost together with them; it makes no network call.
Receiver = Callable[[Sequence[AlertEvent]], None]
receivers: list[Receiver] = []


def announce(*events: AlertEvent) -> None:
    """Hand over events that were just written, also those with a reason to keep quiet: receivers look at `quiet`."""
    if events:
        for receive in receivers:
            receive(events)
