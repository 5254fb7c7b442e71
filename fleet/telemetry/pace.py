"""How often the exporters of machines are read: what "silent" and "a gap" mean for their readings."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.telemetry.models import ScrapeTarget


def scrape_intervals(instance_ids: Iterable[int]) -> dict[int, int]:
    """Seconds between two readings, of the slowest target of each machine that has any, by instance id."""
    rows = ScrapeTarget.objects.filter(instance_id__in=instance_ids, enabled=True)
    slowest: dict[int, int] = {}
    for instance_id, seconds in rows.values_list("instance_id", "interval_seconds"):
        slowest[instance_id] = max(seconds, slowest.get(instance_id, 0))
    return slowest
