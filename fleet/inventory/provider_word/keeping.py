"""Writes what providers measured, and drops it after a week."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from fleet.inventory.listing import text
from fleet.inventory.models import Instance
from fleet.inventory.provider_word.figures import FIGURES, KEPT, figures_of
from fleet.inventory.provider_word.models import ProviderUsage
from fleet.providers import base

BATCH = 500
PRUNE_BATCH = 5_000


def keep_listed_usage(
    machines: Iterable[base.ProviderInstance], *, known: Mapping[tuple[str, str], Instance], now: datetime
) -> int:
    """What a listing tells of its machines' use. Returns how many rows that are."""
    told = [(known.get(usage_key(machine.ref)), machine.usage) for machine in machines if machine.usage is not None]
    return keep_usage([(instance.pk, usage) for instance, usage in told if instance is not None], now=now)


def usage_key(ref: base.Ref) -> tuple[str, str]:
    """(region, external id) as they are stored."""
    return text(Instance, "region", ref.region), text(Instance, "external_id", ref.external_id)


def keep_usage(told: Iterable[tuple[int, base.ProviderUsage]], *, now: datetime) -> int:
    """(primary key of a machine, what was measured). One statement for 500 machines; what is told twice, the last time counts."""
    rows: dict[tuple[int, datetime], ProviderUsage] = {}
    for pk, usage in told:
        if (values := figures_of(usage, now=now)) is not None:
            rows[pk, values["slot"]] = ProviderUsage(instance_id=pk, **values)
    # In one order, whoever writes several: else two wait for each other.
    ordered = [row for _key, row in sorted(rows.items())]
    ProviderUsage.objects.bulk_create(
        ordered,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["instance", "slot"],
        update_fields=["at", *FIGURES],
    )
    return len(ordered)


def prune_usage(*, now: datetime) -> int:
    doomed = ProviderUsage.objects.filter(slot__lt=now - KEPT).order_by("pk")
    dropped = 0
    while batch := list(doomed.values_list("pk", flat=True)[:PRUNE_BATCH]):
        dropped += ProviderUsage.objects.filter(pk__in=batch).delete()[0]
    return dropped
