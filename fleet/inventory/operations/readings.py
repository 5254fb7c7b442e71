"""What the provider shows now of the machine or image that an operation is about. Reads only; complete, or it raises."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import cast

from django.conf import settings

from fleet.inventory.listing import MAX_IMAGES, bounded, key_of, read_machines
from fleet.inventory.operations.proof import CLOCKS_DIFFER
from fleet.providers.base import Capability, FindsInstance, ListsImages, Provider, ProviderImage, ProviderInstance, Ref


def read_machine(adapter: Provider, ref: Ref) -> ProviderInstance | None:
    """None only where a complete list does not name it either: one call that finds nothing may be mistaken, or its address gone."""
    if Capability.FIND in adapter.capabilities:
        found = cast(FindsInstance, adapter).instance(ref)
        if found is not None or Capability.LIST not in adapter.capabilities:
            return found
    return next(
        (machine for machine in all_machines(adapter) if key_of(machine) == (ref.region, ref.external_id)), None
    )


def all_machines(adapter: Provider) -> tuple[ProviderInstance, ...]:
    return read_machines(adapter, timeout_seconds=settings.POLL_TIMEOUT_SECONDS)


def bearing(token: str, machines: Iterable[ProviderInstance]) -> ProviderInstance | None:
    """The machine that was made for this token: providers show it in the name, in a label, or in a field of its own."""
    return next((machine for machine in machines if bears(machine, token)), None)


def bears(machine: ProviderInstance, token: str) -> bool:
    shown = (machine.name, *machine.labels.values(), str(machine.extra.get("client_token", "")))
    return any(token in text for text in shown)


def read_image(adapter: Provider, *, external_id: str, name: str, since: datetime) -> ProviderImage | None:
    """By its id; without one, because the answer was lost, the newest of that name that was made since."""
    deadline = time.monotonic() + settings.POLL_TIMEOUT_SECONDS
    images = list(bounded(cast(ListsImages, adapter).images(), MAX_IMAGES, deadline))
    if external_id:
        return next((image for image in images if image.external_id == external_id), None)
    fresh = [
        (image.created_at, image)
        for image in images
        if image.name == name and image.created_at is not None and image.created_at >= since - CLOCKS_DIFFER
    ]
    return max(fresh, key=lambda pair: pair[0], default=(None, None))[1]
