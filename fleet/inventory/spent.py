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

# The one observation before the month still holds at its beginning. Machine by machine, so that each is read along its index whatever
# the planner believes of the table.
_SPENT = """\
SELECT i.id, spent.currency, spent.amount, spent.unpriced_seconds
FROM fleet_instance i JOIN fleet_provideraccount a ON a.id = i.account_id
CROSS JOIN LATERAL (SELECT CASE WHEN a.kind = ANY(%(listable)s) THEN i.last_seen_at ELSE %(now)s END AS until) known
CROSS JOIN LATERAL (SELECT coalesce(max(p.seen_at), %(since)s) AS seen_at FROM fleet_observation p
    WHERE p.instance_id = i.id AND p.seen_at < %(since)s) first
CROSS JOIN LATERAL (
    SELECT currency, sum(price * seconds) / 3600 AS amount,
        coalesce(sum(seconds) FILTER (WHERE price IS NULL), 0) AS unpriced_seconds
    FROM (
        SELECT o.currency, o.listed, CASE o.billing WHEN %(none)s THEN 0 WHEN %(full)s THEN o.price_per_hour
                WHEN %(storage)s THEN o.storage_price_per_hour END AS price,
            extract(epoch FROM least(lead(o.seen_at) OVER (ORDER BY o.seen_at, o.id), known.until)
                - greatest(o.seen_at, %(since)s)) AS seconds
        FROM fleet_observation o
        WHERE o.instance_id = i.id AND o.seen_at >= first.seen_at AND o.seen_at <= %(now)s
    ) spans WHERE listed AND seconds > 0 GROUP BY currency
) spent WHERE i.id = ANY(%(ids)s) ORDER BY i.id, spent.currency
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
