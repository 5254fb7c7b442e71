"""From a search to rows of the database. A value that an offer does not say passes or falls, as the search wants it; it never counts as 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Least

from fleet.inventory.models import Image
from fleet.inventory.offers.models import Offer
from fleet.inventory.offers.models_asked import models_asked
from fleet.inventory.offers.need import MIB_PER_GIB
from fleet.inventory.offers.search_form import UNKNOWN_FALLS
from fleet.providers.base import Market, Tenancy

# Memory on a label and memory that the driver shows differ by a few percent: an 80 GB card shows 79.6 GiB.
LABEL_TOLERANCE = 0.93

# The slower direction, or the one that is told.
INTERNET = Least(Coalesce("internet_down_mbps", "internet_up_mbps"), Coalesce("internet_up_mbps", "internet_down_mbps"))
# Asked for -> column, and what one unit of the question is in the column's.
LEAST: tuple[tuple[str, str, float], ...] = (
    ("gpus", "gpu_count", 1),
    ("gpu_memory_gib", "gpu_memory_mib", MIB_PER_GIB * LABEL_TOLERANCE),
    ("total_memory_gib", "total_mib", MIB_PER_GIB * LABEL_TOLERANCE),
    ("vcpus", "vcpus", 1),
    ("ram_gib", "ram_mib", MIB_PER_GIB * LABEL_TOLERANCE),
    ("disk_gb", "disk_gb", 1),
    ("internet_mbps", "internet", 1),
    ("node_gbps", "node_network_gbps", 1),
)
# Asked for -> column, and how the column says that nobody knows.
SAME = (
    ("market", "market", Market.UNKNOWN.value),
    ("tenancy", "tenancy", Tenancy.UNKNOWN.value),
    ("interconnect", "gpu_interconnect", ""),
)


def offers_of(team_ids: Collection[int]) -> QuerySet[Offer]:
    """All that the teams may look at. What a disconnected account offered is no longer theirs to rent."""
    return Offer.objects.filter(source__team__in=team_ids).exclude(source__account__disconnected_at__isnull=False)


def matching(offers: QuerySet[Offer], given: Mapping[str, Any], *, known_models: Iterable[str]) -> QuerySet[Offer]:
    """`given`: the cleaned data of a search form."""
    strict = given["unknown"] == UNKNOWN_FALLS
    rows = offers.annotate(total_mib=F("gpu_memory_mib") * F("gpu_count"), internet=INTERNET)
    for name, column, scale in LEAST:
        if given[name]:
            rows = rows.filter(least(column, given[name] * scale, strict=strict))
    for name, column, silent in SAME:
        if given[name]:
            rows = rows.filter(either(Q(**{column: given[name]}), Q(**{column: silent}), strict=strict))
    if given["gpu"]:
        asked = Q(gpu_model__in=models_asked(given["gpu"], known_models))
        rows = rows.filter(either(asked, Q(gpu_model=""), strict=strict))
    if given["region"]:
        rows = rows.filter(either(Q(region__icontains=given["region"]), Q(region=""), strict=strict))
    if given["provider"]:
        rows = rows.filter(provider=given["provider"].lower())
    if given["currency"]:
        rows = rows.filter(currency=given["currency"])
    if given["max_price"] is not None:
        cheap = Q(price_per_hour__lte=given["max_price"])
        rows = rows.filter(either(cheap, Q(price_per_hour=None), strict=strict))
    return rows.filter(with_image(given["image"])) if given["image"] else rows


def least(column: str, value: float, *, strict: bool) -> Q:
    return either(Q(**{f"{column}__gte": value}), Q(**{f"{column}__isnull": True}), strict=strict)


def either(fits: Q, silent: Q, *, strict: bool) -> Q:
    return fits if strict else fits | silent


def with_image(name: str) -> Exists:
    """Offers of accounts that have such an image, in its region where images have one. Others' offers cannot have ours."""
    mine = Image.objects.filter(name__icontains=name, gone_at=None, account=OuterRef("source__account"))
    return Exists(mine.filter(Q(region="") | Q(region=OuterRef("region"))))
