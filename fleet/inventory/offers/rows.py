"""What a source says of an offer, made safe to store. What a provider sends is hostile: texts are cut, numbers that cannot be become unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from fleet.inventory.listing import count, extra, price, text
from fleet.inventory.offers.models import Offer
from fleet.providers.gpus import canonical
from fleet.providers.offers import Offer as ProviderOffer

Values = dict[str, Any]
MAX_SPEED = 1e9
TEXTS = ("external_id", "instance_type", "region", "gpu_raw", "gpu_model", "gpu_interconnect", "disk_kind")
COUNTS = ("gpu_count", "gpu_memory_mib", "vcpus", "ram_mib", "disk_gb")
SPEEDS = ("internet_down_mbps", "internet_up_mbps", "node_network_gbps")


def values_of(offer: ProviderOffer, *, provider: str, default_currency: str) -> Values | None:
    """The columns of one live offer; None for a machine without a GPU, which nobody looks for here."""
    if offer.gpu_count == 0 or not (offer.gpu_model or offer.gpu_raw):
        return None
    values: Values = {name: text(Offer, name, getattr(offer, name)) for name in TEXTS}
    known_as = values["gpu_model"] or canonical(values["gpu_raw"], memory_mib=offer.gpu_memory_mib)
    values["gpu_model"] = text(Offer, "gpu_model", known_as)
    values |= {name: count(getattr(offer, name)) for name in COUNTS}
    values |= {name: speed(getattr(offer, name)) for name in SPEEDS}
    values |= prices_of(offer, default_currency)
    values |= {
        "provider": provider,
        "market": offer.market.value,
        "tenancy": offer.tenancy.value,
        "available": offer.available,
        "reliability": share(offer.reliability),
        "extra": extra(offer.extra),
    }
    return values | {"key": key_of(values)}


def key_of(values: Values) -> str:
    """What names an offer within its source: its id with region and market, and what tells twins without an id apart."""
    parts = (values["external_id"] or values["instance_type"], values["region"], values["market"])
    more = (
        () if values["external_id"] else (values["gpu_model"], values["gpu_count"], values["vcpus"], values["ram_mib"])
    )
    return "|".join(str(part) for part in (*parts, *more))[:400]


def prices_of(offer: ProviderOffer, default_currency: str) -> Values:
    rates = [rate for rate in (offer.price, offer.storage_price_per_gb_month) if rate is not None]
    told = next((rate.currency for rate in rates), default_currency)
    return {
        "price_per_hour": price(offer.price, told),
        "storage_price_per_gb_month": price(offer.storage_price_per_gb_month, told),
        "currency": told if is_currency(told) else default_currency,
    }


def is_currency(word: str) -> bool:
    return len(word) == 3 and word.isascii() and word.isalpha() and word.isupper()


def speed(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and 0 <= value <= MAX_SPEED else None


def share(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and 0 <= value <= 1 else None


def mib(gib: Decimal | float) -> int:
    return int((Decimal(str(gib)) * 1024).to_integral_value(ROUND_HALF_UP))


def without_twins(rows: Iterable[Values]) -> list[Values]:
    """One row a key. Of two that look the same the cheaper one: it is the one that would be taken."""
    kept: dict[str, Values] = {}
    for row in rows:
        other = kept.get(row["key"])
        if other is None or _cost(row) < _cost(other):
            kept[row["key"]] = row
    return list(kept.values())


def _cost(row: Values) -> Decimal:
    return row["price_per_hour"] if row["price_per_hour"] is not None else Decimal("Infinity")
