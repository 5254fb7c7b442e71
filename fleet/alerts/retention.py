"""How long what is over stays on record."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.alerts.models import Alert

# As long as the hourly readings that explain it.
KEEP_CLOSED = timedelta(days=396)


def prune_alerts(*, now: datetime) -> int:
    """Removes what closed that long ago, with its signals and events."""
    _count, by_model = Alert.objects.filter(closed_at__lt=now - KEEP_CLOSED).delete()
    return by_model.get("fleet.Alert", 0)
