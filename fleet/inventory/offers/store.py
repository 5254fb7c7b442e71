"""Puts a whole list of offers in place of the one before. Offers that stay keep their id, so that links to them live."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from fleet.inventory.offers.models import Offer, OfferSource
from fleet.inventory.offers.rows import Values, without_twins

BATCH = 1_000
# What a later reading overwrites: everything but what the row is found by.
COLUMNS = [field.attname for field in Offer._meta.concrete_fields if field.name not in {"id", "source", "key"}]


def replace_offers(source: OfferSource, rows: Iterable[Values], *, now: datetime) -> int:
    """The caller holds a transaction. Returns how many there are."""
    offers = [Offer(source=source, seen_at=now, **row) for row in without_twins(rows)]
    Offer.objects.bulk_create(
        offers, batch_size=BATCH, update_conflicts=True, unique_fields=["source", "key"], update_fields=COLUMNS
    )
    Offer.objects.filter(source=source).exclude(seen_at=now).delete()
    return len(offers)
