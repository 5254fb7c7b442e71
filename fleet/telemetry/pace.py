"""How often the exporters of machines are read: what "silent" and "a gap" mean for their readings."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Max

from fleet.telemetry.models import Agent, ScrapeTarget

DEFAULT_INTERVAL_SECONDS = 5


def scrape_intervals(instance_ids: Iterable[int]) -> dict[int, int]:
    """Seconds between two readings, of the slowest target of each machine that has any, by instance id."""
    rows = ScrapeTarget.objects.filter(instance_id__in=instance_ids, enabled=True)
    slowest: dict[int, int] = {}
    for instance_id, seconds in rows.values_list("instance_id", "interval_seconds"):
        slowest[instance_id] = max(seconds, slowest.get(instance_id, 0))
    return slowest


def slowest_interval(instance_ids: Collection[int]) -> int:
    """In seconds, of the agents and exporters of these machines."""
    slowest = Agent.objects.filter(instance_id__in=instance_ids).aggregate(slowest=Max("interval_seconds"))["slowest"]
    return max(slowest or 0, *scrape_intervals(instance_ids).values(), 0) or DEFAULT_INTERVAL_SECONDS
