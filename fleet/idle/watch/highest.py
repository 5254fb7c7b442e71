"""The highest of each reading of GPUs and machines over a window, out of the engine that holds readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from fleet.telemetry.rollups.columns import FIVE_MINUTES

# Highest, and of utilization the lowest too: a GPU that is never at rest and never draws power is stalled.
GPU_READINGS = ("utilization_percent", "sm_activity", "tensor_activity", "dram_activity", "power_watts")
# What a machine does all by itself for a few seconds is no use of it: the 95th percentile of each five minutes, and the highest of these.
HOST_RATES = (
    "cpu_percent",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "network_rx_bytes_per_second",
    "network_tx_bytes_per_second",
)
HOST_COUNTS = ("ssh_sessions", "jupyter_busy_kernels")


class Wanted(Struct, frozen=True, gc=False):
    """GPUs or machines, each from where its window begins (at five full minutes), and how far apart its samples are expected to be.

    `rests`: by id, from when until when the latest rows show rest without a gap. An engine may believe that of the few minutes that it has
    not summed up yet, which spares it a million samples a minute; whoever wants to know it to the second leaves it out.
    """

    ids: Sequence[int]
    sinces: Sequence[datetime]
    paces: Sequence[int]
    rests: Mapping[int, tuple[datetime, datetime]] = {}


class GpuHighest(Struct, frozen=True, gc=False):
    """`covered_seconds`: for which samples stand. None: not read."""

    covered_seconds: float
    lowest_utilization_percent: float | None
    utilization_percent: float | None
    sm_activity: float | None
    tensor_activity: float | None
    dram_activity: float | None
    power_watts: float | None


class HostHighest(Struct, frozen=True, gc=False):
    covered_seconds: float
    cpu_percent: float | None
    disk_read_bytes_per_second: float | None
    disk_write_bytes_per_second: float | None
    network_rx_bytes_per_second: float | None
    network_tx_bytes_per_second: float | None
    ssh_sessions: float | None
    jupyter_busy_kernels: float | None


class Readings(Protocol):
    """By id; whoever has no reading in the window is left out. StoreError: it cannot be asked."""

    def gpus(self, wanted: Wanted, *, now: datetime) -> Mapping[int, GpuHighest]: ...

    def hosts(self, wanted: Wanted, *, now: datetime) -> Mapping[int, HostHighest]: ...


def window_begins(now: datetime, window: timedelta) -> datetime:
    """At the five full minutes before the window, so that it is made of whole rollups."""
    return FIVE_MINUTES.floor(now - window)


def both(one: float | None, other: float | None) -> float | None:
    """Of two directions, one of which is not read, nobody knows the sum."""
    return None if one is None or other is None else one + other
