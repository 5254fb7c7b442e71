"""How long the delivery log, used links and past calendar entries are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.alerts.channels.models import CalendarEntry, Delivery, DeliveryState, LinkUse

LOG_KEPT = timedelta(days=90)
# Longer than a link is valid.
LINKS_KEPT = timedelta(days=30)
CALENDAR_KEPT = timedelta(days=30)
OVER = (DeliveryState.SENT, DeliveryState.DEAD, DeliveryState.SUPPRESSED)


def prune_channels(*, now: datetime) -> None:
    Delivery.objects.filter(state__in=OVER, created_at__lt=now - LOG_KEPT).delete()
    LinkUse.objects.filter(at__lt=now - LINKS_KEPT).delete()
    CalendarEntry.objects.filter(ends_at__lt=now - CALENDAR_KEPT).delete()
    CalendarEntry.objects.filter(cancelled_at__lt=now - CALENDAR_KEPT).delete()
