"""A team's page, family by family. What was not read is no series, never a zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from fleet.inventory.prices import price_now
from fleet.providers.base import Capability
from fleet.providers.registry import kinds_with
from fleet.states import GpuState
from fleet.telemetry.giving.names import FREE_DESCRIPTION, GPU_NAMES, HOST_NAMES, XID_DESCRIPTION, Name
from fleet.telemetry.giving.read import Fleet, Reading
from fleet.telemetry.giving.text import Family, Number, Point, with_label
from fleet.telemetry.state_codes import SECONDS_COLUMNS

MIB = 1 << 20
# A price that no complete listing has confirmed for so long is not today's.
PRICE_KEPT = timedelta(minutes=15)


def families_of(fleet: Fleet, *, now: datetime) -> Iterator[Family]:
    yield from _gpu_families(fleet)
    for name in HOST_NAMES:
        yield Family(name.name, name.kind, name.description, _values(fleet.hosts, name))
    yield from _machine_families(fleet, now)


def _gpu_families(fleet: Fleet) -> Iterator[Family]:
    # What the latest row keeps beside its columns: errors, energy, encoders.
    gpus = [(labels, {**card["health"], **card}) for labels, card in fleet.gpus]
    for name in GPU_NAMES:
        yield Family(name.name, name.kind, name.description, _values(gpus, name))
    yield Family("DCGM_FI_DEV_FB_FREE", "gauge", FREE_DESCRIPTION, _free_memory(gpus))
    yield Family("DCGM_FI_DEV_XID_ERRORS", "gauge", XID_DESCRIPTION, fleet.xids)
    description = "Seconds in each of the seven states, counted every five minutes."
    yield Family("rackrent_gpu_state_seconds_total", "counter", description, _state_seconds(fleet))


def _machine_families(fleet: Fleet, now: datetime) -> Iterator[Family]:
    description = "GPUs of the machine, by the state that they are in now."
    yield Family("rackrent_instance_gpus", "gauge", description, _states_now(fleet))
    description = "What the machine costs now, an hour, in its present state."
    yield Family("rackrent_instance_price_per_hour", "gauge", description, _prices(fleet, now))


def _values(readings: Iterable[Reading], name: Name) -> Iterator[Point]:
    for labels, values in readings:
        value = values.get(name.field)
        if isinstance(value, (int, float)) and (not name.needs or values.get(name.needs) is not None):
            yield labels, value * name.factor


def _free_memory(gpus: Iterable[Reading]) -> Iterator[Point]:
    for labels, values in gpus:
        free = _free_bytes(values)
        if free is not None:
            yield labels, free / MIB


def _free_bytes(values: Mapping[str, int | None]) -> int | None:
    """Used, free and reserved make up the total. Old drivers count the reserved part as used; else free is not known without it."""
    total, used, reserved = (values[f"memory_{part}_bytes"] for part in ("total", "used", "reserved"))
    if values.get("memory_includes_reserved"):
        reserved = 0
    if total is None or used is None or reserved is None:
        return None
    return max(0, total - used - reserved)


def _state_seconds(fleet: Fleet) -> Iterator[Point]:
    for labels, seconds in fleet.state_seconds:
        for state, value in zip(SECONDS_COLUMNS, seconds, strict=True):
            if value:
                yield with_label(labels, "state", state.value), value


def _states_now(fleet: Fleet) -> Iterator[Point]:
    for labels, machine in fleet.machines:
        found = Counter(tile.verdict.state for tile in machine.gpus)
        for state in GpuState:
            yield with_label(labels, "state", state.value), found[state]


def _prices(fleet: Fleet, now: datetime) -> Iterator[Point]:
    listable = kinds_with(Capability.LIST)
    for labels, machine in fleet.machines:
        instance = machine.instance
        # An account that is read every half hour is not out of date after a quarter.
        kept = max(PRICE_KEPT, timedelta(seconds=3 * instance.account.poll_interval_seconds))
        confirmed = instance.account.kind not in listable or now - instance.last_seen_at <= kept
        price: Number | None = price_now(instance)
        if price is not None and confirmed:
            yield with_label(labels, "currency", instance.currency), price
