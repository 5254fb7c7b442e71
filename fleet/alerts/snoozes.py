"""For how long an alert may be snoozed. Pages, links and the API offer the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta, tzinfo

from django.utils.translation import gettext_lazy as _

from fleet.alerts.causes import Text

MORNING = time(9)
SNOOZES: Mapping[str, Text] = {
    "1h": _("1 h"),
    "4h": _("4 h"),
    "tomorrow": _("until tomorrow 09:00"),
    "worse": _("until it gets worse"),
}


def snooze_end(choice: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """The moment that `choice` of SNOOZES means for a reader in `zone`; None: until it gets worse."""
    if choice == "worse":
        return None
    if choice == "tomorrow":
        return datetime.combine(now.astimezone(zone).date() + timedelta(days=1), MORNING, tzinfo=zone)
    return now + timedelta(hours=int(choice.removesuffix("h")))
