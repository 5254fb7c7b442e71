"""What machines have cost since the month began, from the observation log: the price that was listed x the time for which it was.

Time counts as far as listings show the machine: to its last complete listing, or up to now for machines that people typed. A span in
which it was missing from a listing counts for nothing; a span whose price nobody knows counts as unpriced. Billing minimums, storage that
outlives a machine, discounts and taxes are not in it: it is what the observations prove, not the bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from fleet.providers.base import Billing, Capability
from fleet.providers.registry import kinds_with

# The one observation before the month still holds at its beginning.
_SPENT = """\
SELECT instance_id, currency, sum(price * extract(epoch FROM ended - began)) / 3600,
    coalesce(sum(extract(epoch FROM ended - began)) FILTER (WHERE price IS NULL), 0)
FROM (
    SELECT o.instance_id, o.currency, CASE o.billing WHEN %(none)s THEN 0 WHEN %(full)s THEN o.price_per_hour
            WHEN %(storage)s THEN o.storage_price_per_hour END AS price, o.listed,
        greatest(o.seen_at, %(since)s) AS began,
        least(lead(o.seen_at) OVER (PARTITION BY o.instance_id ORDER BY o.seen_at, o.id), known.until) AS ended
    FROM fleet_instance i JOIN fleet_provideraccount a ON a.id = i.account_id
    CROSS JOIN LATERAL (SELECT CASE WHEN a.kind = ANY(%(listable)s) THEN i.last_seen_at ELSE %(now)s END AS until) known
    CROSS JOIN LATERAL (SELECT coalesce(max(p.seen_at), %(since)s) AS seen_at FROM fleet_observation p
        WHERE p.instance_id = i.id AND p.seen_at < %(since)s) first
    JOIN fleet_observation o ON o.instance_id = i.id AND o.seen_at >= first.seen_at AND o.seen_at <= %(now)s
    WHERE i.id = ANY(%(ids)s)
) spans WHERE listed AND ended > began GROUP BY instance_id, currency ORDER BY instance_id, currency
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """`amount`: None where no span had a known price. One row for each currency in which the machine was listed."""

    instance_id: int
    currency: str
    amount: Decimal | None
    unpriced_seconds: float


def month_start(now: datetime) -> datetime:
    """In UTC, as providers' months are."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def spent_this_month(instance_ids: Sequence[int], *, now: datetime) -> list[Spent]:
    """One query. Grows within a month as listings come, and begins anew with the next."""
    parameters: dict[str, Any] = {
        "ids": list(instance_ids),
        "since": month_start(now),
        "now": now,
        "none": Billing.NONE,
        "full": Billing.FULL,
        "storage": Billing.STORAGE,
        "listable": kinds_with(Capability.LIST),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SPENT, parameters)
        return [Spent(pk, currency, amount, float(unpriced)) for pk, currency, amount, unpriced in cursor.fetchall()]
