"""Five minutes of a whole machine, as they were recorded, and as the verdict takes them. Pure.

All GPUs of a machine are one here: the highest of each reading, power as a multiple of each GPU's own rest. It is idle if and only if each of them is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct

from fleet.idle.verdict.evidence import GpuWindow, Hold, HostWindow, MachineWindow, Mode, ServingWindow

BUCKET = timedelta(minutes=5)
# An answer of five minutes alone would end a quiet time with every reading that came late.
COVERED_BUCKETS = 6


class Bucket(Struct, frozen=True, gc=False):
    """[at, at + BUCKET) of one machine; None = not read. `gpus` that have a record, of which `unread` told nothing.

    `power_ratio`: the highest of each GPU's power over its own rest. `waiting`: requests that ran or waited, summed over readings.
    """

    instance_id: int
    at: datetime
    gpus: int
    unread: int
    coverage: float
    utilization_percent: float | None = None
    sm_activity: float | None = None
    tensor_activity: float | None = None
    dram_activity: float | None = None
    power_ratio: float | None = None
    host_coverage: float | None = None
    cpu_percent: float | None = None
    disk_bytes_per_second: float | None = None
    network_bytes_per_second: float | None = None
    ssh_sessions: float | None = None
    busy_kernels: float | None = None
    endpoints: int = 0
    serving_coverage: float | None = None
    requests: int | None = None
    waiting: float | None = None
    ready_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Power:
    """From `since` on the provider listed the machine so. `powered` None: nobody can tell. `started_at`: of the run that goes on."""

    since: datetime
    powered: bool | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class Held:
    """[start, end) in which somebody said that the machine is in use; end None: it goes on. `name`: of the job or the reason."""

    kind: str
    start: datetime
    end: datetime | None
    name: str = ""

    def touches(self, start: datetime, end: datetime) -> bool:
        return self.start < end and (self.end is None or self.end > start)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one machine beside its readings. `gpus`: rented; `expected`: how many should have a record, None: nobody knows.

    `powers`, and `changes`, when it became another machine (a boot, an image, a driver), in the order of time.
    """

    instance_id: int
    gpus: int
    expected: int | None
    mode: Mode
    powers: Sequence[Power] = ()
    holds: Sequence[Held] = ()
    changes: Sequence[datetime] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What came before a bucket: of the machine's power, of its use, and how much of the last half hour was read."""

    power: Power | None
    started_at: datetime | None
    active_at: datetime | None
    coverage: float
    host_coverage: float


def window_of(bucket: Bucket, known: Known, context: Context) -> MachineWindow:
    end = bucket.at + BUCKET
    power = context.power
    return MachineWindow(
        now=end,
        window=BUCKET,
        mode=known.mode,
        powered=None if power is None else power.powered,
        gpu_count=rented(bucket, known),
        gpus=tuple(gpus_of(bucket, context.coverage)),
        host=host_of(bucket, context.host_coverage),
        started_at=context.started_at,
        serving=tuple(serving_of(bucket)),
        holds=tuple(Hold(one.kind, one.name) for one in known.holds if one.touches(bucket.at, end)),
        active_at=context.active_at,
    )


def rented(bucket: Bucket, known: Known) -> int | None:
    """In terms of gpus_of: more than those where some of the rented ones have no record."""
    if known.expected is None:
        return None
    shown = min(bucket.gpus, 1) + bucket.unread
    return shown if bucket.gpus >= known.expected else shown + 1


def gpus_of(bucket: Bucket, coverage: float) -> Iterator[GpuWindow]:
    """All that were read as one, and each that was not."""
    newest_at = bucket.at + BUCKET
    if bucket.gpus:
        yield GpuWindow(
            0,
            coverage,
            newest_at,
            utilization_percent=bucket.utilization_percent,
            sm_activity=bucket.sm_activity,
            tensor_activity=bucket.tensor_activity,
            dram_activity=bucket.dram_activity,
            power_watts=bucket.power_ratio,
            floor_watts=None if bucket.power_ratio is None else 1.0,
        )
    for number in range(bucket.unread):
        yield GpuWindow(number + 1, coverage, newest_at)


def host_of(bucket: Bucket, coverage: float) -> HostWindow | None:
    if bucket.host_coverage is None:
        return None
    return HostWindow(
        coverage,
        bucket.at + BUCKET,
        cpu_percent=bucket.cpu_percent,
        disk_bytes_per_second=bucket.disk_bytes_per_second,
        network_bytes_per_second=bucket.network_bytes_per_second,
        ssh_sessions=count_of(bucket.ssh_sessions),
        busy_kernels=count_of(bucket.busy_kernels),
    )


def serving_of(bucket: Bucket) -> Iterator[ServingWindow]:
    """All endpoints as one: any request of any of them is use."""
    if bucket.endpoints:
        yield ServingWindow(
            "",
            bucket.ready_at,
            bucket.serving_coverage or 0.0,
            requests=bucket.requests,
            waiting=count_of(bucket.waiting),
        )


def count_of(highest: float | None) -> int | None:
    """A maximum of counts is one, though rollups keep it as a number with a point."""
    return None if highest is None else -int(-highest // 1)
