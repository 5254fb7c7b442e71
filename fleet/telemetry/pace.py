"""How often the exporters of machines are read: what "silent" and "a gap" mean for their readings."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import F, Max

from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.sources.models import SourceMachine

DEFAULT_INTERVAL_SECONDS = 5


def scrape_intervals(instance_ids: Iterable[int]) -> dict[int, int]:
    """Seconds between two readings, of the slowest target or source of each machine that has any, by instance id."""
    ids = list(instance_ids)
    targets = ScrapeTarget.objects.filter(instance_id__in=ids, enabled=True)
    # A Prometheus is asked for what it has scraped itself: one wait comes on top of the other.
    sources = SourceMachine.objects.filter(instance_id__in=ids, source__enabled=True)
    waits = sources.values_list("instance_id", F("sample_seconds") + F("source__interval_seconds"))
    slowest: dict[int, int] = {}
    for instance_id, seconds in targets.values_list("instance_id", "interval_seconds").union(waits, all=True):
        slowest[instance_id] = max(seconds, slowest.get(instance_id, 0))
    return slowest


def slowest_interval(instance_ids: Collection[int]) -> int:
    """In seconds, of the agents and exporters of these machines."""
    slowest = Agent.objects.filter(instance_id__in=instance_ids).aggregate(slowest=Max("interval_seconds"))["slowest"]
    return max(slowest or 0, *scrape_intervals(instance_ids).values(), 0) or DEFAULT_INTERVAL_SECONDS
