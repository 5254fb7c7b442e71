"""RunPod's catalogue: prices are for one GPU there and for the whole pod here."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fleet.providers.base import Market, Money, Offer, Tenancy
from fleet.providers.gpus import canonical
from fleet.providers.rows import Row, price
from fleet.providers.runpod_pods import TENANCIES, type_of

CLOUDS = ("SECURE", "COMMUNITY")
# Numbers of GPUs that are asked for where the question names none: availability is told for one number at a time.
COUNTS = (1, 2, 4, 8)
RUNNING_VOLUME_PRICE = Money(Decimal("0.10"), "USD")
SOLD_OUT = "NONE"


def offers_of(row: Row, cloud: str, count: int) -> Iterator[Offer]:
    """A GPU type in one cloud: an offer for each data centre that has it, or one for wherever there is a place."""
    key = cloud.lower()
    if not row[key] or row["maxCount"][key] < count:
        return
    places = row.get("dataCenters") or [{"id": "", "availability": row.get("availability")}]
    for place in places:
        level = place.get("availability")
        yield Offer(
            external_id=f"{cloud}:{count}:{row['id']}",
            instance_type=type_of({"id": row["id"], "count": count}),
            region=str(place["id"]),
            market=Market.ON_DEMAND,
            tenancy=TENANCIES.get(cloud, Tenancy.UNKNOWN),
            price=price(row["price"][key], "USD", times=count),
            storage_price_per_gb_month=RUNNING_VOLUME_PRICE,
            available=None if level is None else level != SOLD_OUT,
            gpu_raw=str(row["id"]),
            gpu_model=canonical(str(row["id"])),
            gpu_count=count,
            gpu_memory_mib=int(row["memory"]) * 1024,
            extra={"availability": level} if level else {},
        )
