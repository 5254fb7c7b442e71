"""What is known of one machine over a window of time, as the verdict needs it. Pure; None = not read, which never counts as zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Mode(StrEnum):
    """How a machine is used. It decides which signals end a quiet time."""

    # People: notebooks, shells, experiments.
    INTERACTIVE = "interactive"
    # Runs that say that they are alive; without a heartbeat the signals decide.
    BATCH = "batch"
    # Idle by requests, from the first time that it was ready.
    SERVING = "serving"
    # Never idle, by somebody's word.
    PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class GpuWindow:
    """One GPU over the window: the highest of each reading, and how much of the window was read.

    coverage: share (0-1) of the samples that should have come. `floor_watts`: the lowest power that this GPU drew in a week of readings,
    which is what it draws at rest. `owner`: whose part of a shared machine it is, "" = nobody's in particular.
    """

    index: int
    coverage: float
    newest_at: datetime | None
    utilization_percent: float | None = None
    sm_activity: float | None = None
    tensor_activity: float | None = None
    dram_activity: float | None = None
    power_watts: float | None = None
    lowest_utilization_percent: float | None = None
    power_limit_watts: float | None = None
    floor_watts: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    process_count: int | None = None
    lost: bool = False
    owner: str = ""
    # When a reading last showed work, by whatever came however late; of a time that may lie before the window.
    worked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HostWindow:
    """The machine around the GPUs over the window. Rates are bytes a second, CPU 0-100 of what it may use.

    Of these the highest of each five minutes' 95th percentiles: what every machine does for a few seconds, by its clock, is no use of it.
    """

    coverage: float
    newest_at: datetime | None
    cpu_percent: float | None = None
    disk_bytes_per_second: float | None = None
    network_bytes_per_second: float | None = None
    ssh_sessions: int | None = None
    busy_kernels: int | None = None
    # When a notebook's kernel last was asked for something: cells that take a moment are never seen to run.
    kernel_active_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ServingWindow:
    """One serving endpoint over the window. `ready_at`: when it first answered; None = it never has. requests None: its counters are not read."""

    name: str
    ready_at: datetime | None
    coverage: float
    requests: int | None = None
    waiting: int | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """What somebody said: the machine is in use. `until` None: until they say otherwise. `heartbeat`: it has to be renewed."""

    kind: str
    owner: str
    until: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MachineWindow:
    """All that is known of one machine at `now` over the `window` before it.

    `powered`: what the provider lists; its own measurements of use are no part of this, because they are never enough. `started_at`: of
    the present run, or of its image or driver, whatever is newest. `clock_jumped_at`: when the machine's clock last moved by itself.
    `gpu_count`: rented, which may be more than report. `active_at`: the newest reading that showed work, or somebody who came, however long ago.
    """

    now: datetime
    window: timedelta
    mode: Mode
    powered: bool | None
    gpu_count: int | None
    gpus: tuple[GpuWindow, ...]
    host: HostWindow | None
    started_at: datetime | None
    serving: tuple[ServingWindow, ...] = ()
    holds: tuple[Hold, ...] = ()
    active_at: datetime | None = None
    clock_jumped_at: datetime | None = None
    # False: its driver does not answer, so that what is not read is no rest.
    driver_answers: bool = True
    # False: what holds the readings of the window could not be asked.
    readings_answer: bool = True
