"""One complete listing of an account, read over the network and made safe to store. Nothing is written here.

What a provider sends is hostile: lengths are bounded, texts cut, numbers that no machine can have become unknown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice
from typing import Any, TypeVar, cast

from django.db import models

from fleet.inventory.failures import TOOK_TOO_LONG
from fleet.inventory.models import Image, Instance
from fleet.inventory.ssh import is_host, is_user
from fleet.providers.base import (
    Capability,
    ListsImages,
    ListsInstances,
    Money,
    Provider,
    ProviderImage,
    ProviderInstance,
    Ssh,
)
from fleet.providers.errors import ScopeMissing, Unavailable
from fleet.providers.redact import cut

MAX_MACHINES = 20_000
MAX_IMAGES = 20_000
MAX_LABELS = 50
MAX_SSH = 8
MAX_EXTRA_CHARS = 4_000
MAX_INTEGER = 2**31 - 1
MAX_PRICE = Decimal(1_000_000)
MAX_SIZE_GB = Decimal(1_000_000)
SIZE_STEP = Decimal("0.001")
PRICE_STEP = Decimal("0.000001")
T = TypeVar("T")

# Fields of Instance that each listing overwrites. What people say (owner, project, labels, managed) is not among them.
LISTED = (
    "name",
    "state",
    "raw_state",
    "state_reason",
    "billing",
    "market",
    "tenancy",
    "instance_type",
    "gpu_raw",
    "gpu_model",
    "gpu_count",
    "gpu_memory_mib",
    "host_share",
    "vcpus",
    "ram_mib",
    "disk_gb",
    "price_per_hour",
    "storage_price_per_hour",
    "currency",
    "image_name",
    "ssh",
    "provider_created_at",
    "started_at",
    "provider_stopped_at",
    "expires_at",
    "provider_labels",
    "extra",
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Every machine of an account, and its own images (None = unknown: no such list, or the key may not read it)."""

    machines: tuple[ProviderInstance, ...]
    images: tuple[ProviderImage, ...] | None = None


def read_listing(adapter: Provider, *, timeout_seconds: float) -> Listing:
    """Complete, or it raises a ProviderError. Between two machines the clock is looked at; a single call has the adapter's own time-out."""
    deadline = time.monotonic() + timeout_seconds
    machines = read_machines(adapter, timeout_seconds=timeout_seconds)
    images = listed_images(adapter, deadline) if Capability.IMAGES in adapter.capabilities else None
    return Listing(machines, images)


def read_machines(adapter: Provider, *, timeout_seconds: float) -> tuple[ProviderInstance, ...]:
    """Every machine of the account, or it raises a ProviderError."""
    deadline = time.monotonic() + timeout_seconds
    machines = tuple(bounded(cast(ListsInstances, adapter).instances(), MAX_MACHINES, deadline))
    refuse_twins(key_of(machine) for machine in machines)
    return machines


def listed_images(adapter: Provider, deadline: float) -> tuple[ProviderImage, ...] | None:
    """None where the key may not read them, in one region too: what nobody could look for is not gone."""
    try:
        return tuple(bounded(cast(ListsImages, adapter).images(), MAX_IMAGES, deadline))
    except ScopeMissing:
        return None


def bounded(rows: Iterator[T], limit: int, deadline: float) -> Iterator[T]:
    for count, row in enumerate(rows, start=1):
        if count > limit:
            raise Unavailable(f"The listing has more than {limit} rows.")
        if time.monotonic() > deadline:
            raise Unavailable(TOOK_TOO_LONG)
        yield row


def refuse_twins(keys: Iterable[tuple[str, str]]) -> None:
    """One row for two machines, or a machine without a name to find it by, would be a guess."""
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if not key[1]:
            raise Unavailable("The listing names a machine without an id.")
        if key in seen:
            raise Unavailable(f"The listing names {cut(key[1], 60)} twice.")
        seen.add(key)


def key_of(machine: ProviderInstance) -> tuple[str, str]:
    """(region, external id) as they are stored."""
    return text(Instance, "region", machine.ref.region), text(Instance, "external_id", machine.ref.external_id)


def fields_of(machine: ProviderInstance, *, default_currency: str) -> dict[str, Any]:
    """The values of LISTED for one machine."""
    values = texts_of(machine) | numbers_of(machine) | prices_of(machine, default_currency)
    values |= {
        "state": machine.state.value,
        "billing": machine.billing.value,
        "market": machine.market.value,
        "tenancy": machine.tenancy.value,
        "ssh": addresses(machine.ssh),
        "provider_created_at": machine.created_at,
        "started_at": machine.started_at,
        "provider_stopped_at": machine.stopped_at,
        "expires_at": machine.expires_at,
        "provider_labels": labels(machine.labels),
        "extra": extra(machine.extra),
    }
    return values


def texts_of(machine: ProviderInstance) -> dict[str, str]:
    names = ("name", "raw_state", "state_reason", "instance_type", "gpu_raw", "gpu_model", "image_name")
    values = {name: text(Instance, name, getattr(machine, name)) for name in names}
    values["name"] = values["name"] or text(Instance, "name", machine.ref.external_id)
    return values


def numbers_of(machine: ProviderInstance) -> dict[str, Any]:
    names = ("gpu_count", "gpu_memory_mib", "vcpus", "ram_mib", "disk_gb")
    values: dict[str, Any] = {name: count(getattr(machine, name)) for name in names}
    share = machine.host_share
    values["host_share"] = share.quantize(Decimal("0.00001")) if share is not None and 0 < share <= 1 else None
    return values


def prices_of(machine: ProviderInstance, default_currency: str) -> dict[str, Any]:
    rates = [rate for rate in (machine.rate, machine.storage_rate) if rate is not None]
    currency = next((rate.currency for rate in rates), default_currency)
    return {
        "price_per_hour": price(machine.rate, currency),
        "storage_price_per_hour": price(machine.storage_rate, currency),
        "currency": currency if len(currency) == 3 and currency.isascii() and currency.isupper() else default_currency,
    }


def price(rate: Money | None, currency: str) -> Decimal | None:
    """None for what is no price: negative, not a number, absurd, or in another currency than the machine's."""
    if rate is None or not rate.amount.is_finite() or not 0 <= rate.amount < MAX_PRICE or rate.currency != currency:
        return None
    return rate.amount.quantize(PRICE_STEP, ROUND_HALF_UP)


def text(model: type[models.Model], field: str, value: str) -> str:
    column = model._meta.get_field(field)
    assert isinstance(column, models.CharField)
    return cut(value, column.max_length or 0)


def image_text(field: str, value: str) -> str:
    return text(Image, field, value)


def size(gigabytes: Decimal | None) -> Decimal | None:
    """None for what no image can have."""
    if gigabytes is None or not gigabytes.is_finite() or not 0 <= gigabytes < MAX_SIZE_GB:
        return None
    return gigabytes.quantize(SIZE_STEP, ROUND_HALF_UP)


def count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_INTEGER else None


def addresses(given: Iterable[Ssh]) -> list[dict[str, Any]]:
    """Those that can be pasted into a shell; the others are dropped."""
    fit = (ssh for ssh in given if is_host(ssh.host) and (not ssh.user or is_user(ssh.user)))
    return [address(ssh) for ssh in islice(fit, MAX_SSH)]


def address(ssh: Ssh) -> dict[str, Any]:
    port = ssh.port if 0 < ssh.port < 65_536 else 22
    return {"host": ssh.host, "port": port, "user": ssh.user, "kind": cut(ssh.kind, 16)}


def labels(given: Mapping[str, str]) -> dict[str, str]:
    return {cut(key, 128): cut(value, 256) for key, value in list(given.items())[:MAX_LABELS]}


def extra(given: Mapping[str, object]) -> dict[str, object]:
    """Kept only while it is small and something that jsonb takes: no NUL, no NaN, no half of a character."""
    kept = {cut(key, 60): cut(value, 300) if isinstance(value, str) else value for key, value in given.items()}
    try:
        dumped = json.dumps(kept, default=str, ensure_ascii=False, allow_nan=False)
        dumped.encode()
    except ValueError:
        return {}
    fits = len(dumped) <= MAX_EXTRA_CHARS and "\\u0000" not in dumped
    return dict(json.loads(dumped)) if fits else {}
