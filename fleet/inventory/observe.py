"""The observation log: one row whenever what a provider shows of a machine differs from the row before. Costs are rebuilt from it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from fleet.inventory.models import Instance, Observation

# 25 months, so that a bill of two years ago can still be checked a month after its last day.
KEPT = timedelta(days=762)
PRUNE_BATCH = 5_000

# Fields of Instance that make an observation when one of them changes.
OBSERVED = (
    "raw_state",
    "state",
    "billing",
    "market",
    "price_per_hour",
    "storage_price_per_hour",
    "currency",
    "provider_created_at",
    "started_at",
    "provider_stopped_at",
    "rule_version",
)


def observation_of(
    instance: Instance, *, now: datetime, unchanged_until: datetime | None = None, listed: bool = True
) -> Observation:
    """An unsaved row with what `instance` shows now."""
    return Observation(
        instance=instance,
        seen_at=now,
        unchanged_until=unchanged_until,
        listed=listed,
        raw_state=instance.raw_state,
        state=instance.state,
        billing=instance.billing,
        market=instance.market,
        price_per_hour=instance.price_per_hour,
        storage_price_per_hour=instance.storage_price_per_hour,
        currency=instance.currency,
        provider_created_at=instance.provider_created_at,
        provider_started_at=instance.started_at,
        provider_stopped_at=instance.provider_stopped_at,
        rule_version=instance.rule_version,
    )


def observe(
    instance: Instance, *, now: datetime, unchanged_until: datetime | None = None, listed: bool = True
) -> Observation:
    row = observation_of(instance, now=now, unchanged_until=unchanged_until, listed=listed)
    row.save()
    return row


def prune_observations(*, now: datetime) -> int:
    """Drops rows older than 25 months, but for the last one before that of each machine: it still holds at the border."""
    border = now - KEPT
    newer = Observation.objects.filter(
        instance=OuterRef("instance"), seen_at__gt=OuterRef("seen_at"), seen_at__lte=border
    )
    doomed = Observation.objects.filter(Exists(newer), seen_at__lte=border).order_by("pk")
    dropped = 0
    while batch := list(doomed.values_list("pk", flat=True)[:PRUNE_BATCH]):
        dropped += Observation.objects.filter(pk__in=batch).delete()[0]
    return dropped
