"""The price table that comes with the product: the planner's dated prices, what is known of those machines, and older figures of others.

Every row keeps its day and its source. It is a sample of what was asked then, never today's offer, and is shown with its age.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from django.db import transaction

from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.inventory.offers.rows import Values, key_of, mib, without_twins
from fleet.inventory.offers.store import replace_offers
from fleet.providers.base import Market, Tenancy
from fleet.providers.gpus import canonical
from fleet.teams.models import Team
from planner.catalogue.gpus import MIB, Gpu, gpus
from planner.catalogue.prices import RentPrice, rent_prices

DATA = Path(__file__).resolve().parent / "data"
NAME = "Rackrent"
# What its adapter calls a provider, where a table calls it otherwise.
KINDS = {"datacrunch": "verda", "gcp": "google"}
# Of a machine that is sold with one to eight GPUs, these are what people take.
USUAL_COUNTS = (1, 2, 4, 8)
EMPTY = {
    field.name: field.get_default()
    for field in Offer._meta.concrete_fields
    if field.name not in {"id", "source", "seen_at"}
}


def lay_out_tables(*, now: datetime) -> int:
    """Gives every team the present edition of the table. Returns how many teams had another one, or none."""
    behind = Team.objects.exclude(offer_sources__kind=SourceKind.TABLE, offer_sources__edition=edition())
    for team in (teams := list(behind)):
        lay_out_table(team, now=now)
    return len(teams)


@transaction.atomic
def lay_out_table(team: Team, *, now: datetime) -> None:
    source, _new = OfferSource.objects.update_or_create(
        team=team, kind=SourceKind.TABLE, name=NAME, defaults={"edition": edition(), "read_at": now}
    )
    replace_offers(source, table_rows(), now=now)


@cache
def edition() -> str:
    """Another one whenever a row is."""
    return hashlib.sha256(repr(table_rows()).encode()).hexdigest()


def table_rows() -> list[Values]:
    return without_twins([*_planner_rows(), *_older_rows()])


def _planner_rows() -> Iterator[Values]:
    """Of several days the newest: the table says what was asked last."""
    newest: dict[tuple[object, ...], RentPrice] = {}
    for price in sorted(rent_prices(), key=lambda price: price.observed_on):
        newest[price.provider, price.sku, price.gpu_id, price.gpus, price.kind, price.region] = price
    for price in newest.values():
        counts = [count for count in USUAL_COUNTS if price.gpus <= count <= price.most_gpus] or [price.gpus]
        yield from (_planner_row(price, count) for count in counts)


def _planner_row(price: RentPrice, count: int) -> Values:
    gpu = gpus()[price.gpu_id]
    vcpus, ram_mib = machines().get((price.provider, price.sku), (None, None))
    return _row(
        provider=price.provider,
        instance_type=price.sku,
        region=price.region,
        kind=price.kind,
        price_per_hour=price.per_gpu_hour * count,
        currency=price.currency,
        gpu_model=canonical(gpu.nvml_name, memory_mib=gpu.memory_bytes // MIB),
        gpu_count=count,
        gpu_memory_mib=gpu.memory_bytes // MIB,
        gpu_interconnect=_interconnect(gpu, count),
        vcpus=vcpus,
        ram_mib=ram_mib,
        priced_on=price.observed_on,
        origin=price.source,
    )


def _interconnect(gpu: Gpu, count: int) -> str:
    """Empty where a bridge may or may not be fitted."""
    if count > 1 and gpu.interconnect == "NVSwitch":
        return "nvlink"
    return "pcie" if count > 1 and gpu.nvlink_bandwidth is None else ""


def _older_rows() -> Iterator[Values]:
    for cells in _read("older_prices.csv"):
        yield _row(
            provider=cells["provider"],
            instance_type=cells["instance_type"],
            kind=cells["kind"],
            price_per_hour=Decimal(cells["price_per_hour"]),
            currency=cells["currency"],
            gpu_model=cells["gpu"],
            gpu_count=int(cells["gpus"]),
            gpu_memory_mib=mib(Decimal(cells["gpu_memory_gib"])),
            vcpus=int(cells["vcpus"]),
            ram_mib=mib(Decimal(cells["ram_gib"])),
            priced_on=date.fromisoformat(cells["observed_on"]),
            origin=cells["source"],
        )


@cache
def machines() -> Mapping[tuple[str, str], tuple[int, int]]:
    """(provider, instance type) -> vCPUs and MiB of RAM."""
    return {
        (cells["provider"], cells["instance_type"]): (int(cells["vcpus"]), mib(Decimal(cells["ram_gib"])))
        for cells in _read("machines.csv")
    }


def _row(*, kind: str, provider: str, **known: object) -> Values:
    spot, community = kind == "spot", kind == "community"
    values = {
        **EMPTY,
        **known,
        "provider": KINDS.get(provider, provider),
        "market": Market.SPOT.value if spot else Market.ON_DEMAND.value,
        "tenancy": Tenancy.COMMUNITY_HOST.value if community else Tenancy.UNKNOWN.value,
        "gpu_raw": known["gpu_model"],
    }
    return values | {"key": key_of(values)}


def _read(name: str) -> Iterator[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
