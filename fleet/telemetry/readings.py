"""From a checked batch to rows: pure, no database and no clock.

Rows are tuples in the order of GPU_COLUMNS and HOST_COLUMNS. Times are epoch seconds on the server's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

import msgspec

from fleet.states import DEFAULTS, Evidence, classify, shows_work
from fleet.telemetry.sanitise import clean, clean_map
from fleet.telemetry.serving.readings import Endpoint
from fleet.telemetry.serving.readings import rows_of as serving_rows
from fleet.telemetry.state_codes import STATE_CODES
from fleet.telemetry.wire import HEALTH_FIELDS, Batch, Event, GpuWire, HostWire, Sample


def _columns(kind: type[msgspec.Struct], first: str, past_last: str) -> tuple[str, ...]:
    names = kind.__struct_fields__
    return names[names.index(first) : names.index(past_last)]


GPU_COLUMNS = _columns(GpuWire, "utilization_percent", "memory_total_bytes")
HOST_COLUMNS = _columns(HostWire, "cpu_percent", "memory_total_bytes")
gpu_values = attrgetter(*GPU_COLUMNS)
host_values = attrgetter(*HOST_COLUMNS)
# Of a row of a GPU or machine: its readings stand behind its id, moment, state or devices, and interval.
READINGS_FROM = 4

OLDEST_SECONDS = 48 * 3600
NEWEST_SECONDS = 60
# Clocks this close are taken as right: the journey of a request looks like skew too.
SKEW_TOLERANCE_SECONDS = 5.0
# In the queue of a web process that is being restarted; no agent waits longer for an answer.
LONGEST_WAIT_SECONDS = 120.0
CONFIRMATIONS = 3
# A sample whose five minutes ended longer ago than this is late: its bucket is rolled (again) for its sake. Rollups wait longer than
# this after a bucket's end, by more than a group commit takes (rollups/roll.py).
LATE_SECONDS = 30.0
LATE_BUCKET_SECONDS = 300

_GAP_SECONDS = DEFAULTS.unbroken_gap.total_seconds()
_moment = itemgetter(0)
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Trail:
    """What a batch says of one GPU: its newest reading, and for each reading whether it showed work."""

    at: float
    newest: GpuWire
    marks: list[tuple[float, bool | None]]

    def join(self, other: Trail) -> None:
        self.marks += other.marks
        if other.at > self.at:
            self.at, self.newest = other.at, other.newest


@dataclass(frozen=True, slots=True)
class Activity:
    """A trail, folded. `continues`: every reading since `first_at` was idle, so an idle time before it goes on."""

    first_at: float
    busy_at: float | None
    idle_since: float | None
    continues: bool


@dataclass(slots=True)
class Rows:
    """What one batch adds. GPU rows: id, moment, code of the state, interval, readings; host rows: id, moment, JSON of the devices or None, interval, readings."""

    gpus: list[tuple[Any, ...]] = field(default_factory=list)
    hosts: list[tuple[Any, ...]] = field(default_factory=list)
    trails: dict[int, Trail] = field(default_factory=dict)
    newest_host: tuple[float, HostWire] | None = None
    events: list[tuple[Any, ...]] = field(default_factory=list)
    # Of serving endpoints: id, moment, readings; and when each last showed a request.
    serving: list[tuple[Any, ...]] = field(default_factory=list)
    requested: dict[int, float] = field(default_factory=dict)
    moments: set[float] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.gpus) + len(self.hosts) + len(self.events) + len(self.serving)


def agreed_skew(*, measured: Sequence[float], applied: float) -> float:
    """The correction for a batch: the one already applied while it still fits, so that a batch sent twice gets the same keys.

    `measured`: received minus sent of the agent's last batches, the newest last. A batch that had to wait to be read looks as if its
    clock were behind, so that a correction forward needs CONFIRMATIONS batches in a row that agree, and the one that waited least decides.
    """
    newest = measured[-1]
    if abs(newest) <= SKEW_TOLERANCE_SECONDS:
        return 0.0
    if applied and abs(newest - applied) <= SKEW_TOLERANCE_SECONDS:
        return applied
    if not applied < newest < applied + LONGEST_WAIT_SECONDS:
        return float(round(newest))
    agree = len(measured) == CONFIRMATIONS and max(measured) - min(measured) <= SKEW_TOLERANCE_SECONDS
    return float(round(min(measured))) if agree else applied


def rows_of(
    batch: Batch,
    *,
    instance_id: int,
    gpu_ids: Mapping[str, int],
    skew_seconds: float,
    received_at: float,
    dropped: Counter[str],
    endpoints: Mapping[Endpoint, int] = MappingProxyType({}),
) -> Rows:
    """Every reading whose moment can be true; the others are counted in `dropped["at"]`. `gpu_ids` must know every UUID."""
    rows = Rows()
    oldest, newest = received_at - OLDEST_SECONDS, received_at + NEWEST_SECONDS
    for sample in batch.samples or ():
        at = sample.at + skew_seconds
        if oldest <= at <= newest:
            _add_sample(rows, sample, at, instance_id, gpu_ids)
            _add_serving(rows, sample, at, endpoints, dropped)
        else:
            dropped["at"] += 1
    for event in batch.events or ():
        at = event.at + skew_seconds
        if oldest <= at <= newest:
            rows.events.append(_event_row(event, at, instance_id, gpu_ids))
        else:
            dropped["at"] += 1
    return rows


def _add_sample(rows: Rows, sample: Sample, at: float, instance_id: int, gpu_ids: Mapping[str, int]) -> None:
    rows.moments.add(at)
    host = sample.host
    if host is not None:
        rows.hosts.append((instance_id, at, devices_json(host), sample.interval_seconds, *host_values(host)))
        if rows.newest_host is None or at > rows.newest_host[0]:
            rows.newest_host = (at, host)
    trails = rows.trails
    moment = datetime.fromtimestamp(at, UTC)
    read_at, waits = (at, host) if host is not None else rows.newest_host or (None, None)
    host_moment = datetime.fromtimestamp(read_at, UTC) if read_at is not None else None
    for gpu in sample.gpus or ():
        gpu_id = gpu_ids[gpu.uuid]
        state = state_code(gpu, moment, waits, host_moment)
        rows.gpus.append((gpu_id, at, state, sample.interval_seconds, *gpu_values(gpu)))
        mark = (at, None if gpu.state == "lost" else shows_work_of(gpu))
        trail = trails.get(gpu_id)
        if trail is None:
            trails[gpu_id] = Trail(at, gpu, [mark])
            continue
        trail.marks.append(mark)
        if at > trail.at:
            trail.at, trail.newest = at, gpu


def _add_serving(
    rows: Rows, sample: Sample, at: float, endpoints: Mapping[Endpoint, int], dropped: Counter[str]
) -> None:
    for row, requested in serving_rows(sample, at, endpoints, dropped):
        rows.serving.append(row)
        if requested:
            rows.requested[row[0]] = max(at, rows.requested.get(row[0], at))


def state_code(gpu: GpuWire, moment: datetime, host: HostWire | None, host_moment: datetime | None) -> int:
    """The state at the moment of the reading, not at the moment it arrived; of the machine's own readings, those made with it or before."""
    evidence = Evidence(
        now=moment,
        powered=True,
        sampled_at=moment,
        lost=gpu.state == "lost",
        utilization_percent=gpu.utilization_percent,
        sm_activity=gpu.sm_activity,
        power_watts=gpu.power_watts,
        power_limit_watts=gpu.power_limit_watts,
        memory_used_bytes=gpu.memory_used_bytes,
        process_count=gpu.process_count,
        host_sampled_at=host_moment,
        cpu_iowait_percent=host.cpu_iowait_percent if host else None,
        pressure_io_percent=host.pressure_io_percent if host else None,
    )
    return STATE_CODES[classify(evidence).state]


def late_buckets(moments: Iterable[float], *, now: float) -> set[float]:
    """Where the five minutes begin that were over for LATE_SECONDS when these samples came. A machine and its GPUs are rolled together."""
    newest_late = now - LATE_SECONDS - LATE_BUCKET_SECONDS
    starts = (at // LATE_BUCKET_SECONDS * LATE_BUCKET_SECONDS for at in moments)
    return {start for start in starts if start <= newest_late}


def shows_work_of(gpu: GpuWire) -> bool | None:
    return shows_work(utilization_percent=gpu.utilization_percent, sm_activity=gpu.sm_activity)


def _event_row(event: Event, at: float, instance_id: int, gpu_ids: Mapping[str, int]) -> tuple[Any, ...]:
    gpu_id = gpu_ids[event.gpu] if event.gpu else None
    return (instance_id, gpu_id, at, event.kind, event.code, clean(event.detail))


def activity_of(marks: list[tuple[float, bool | None]]) -> Activity:
    if len(marks) > 1:
        marks = sorted(marks, key=_moment)
    first_at = before = marks[0][0]
    busy_at: float | None = None
    idle_since: float | None = None
    continues = True
    for at, busy in marks:
        if busy is not False:
            busy_at = at if busy else busy_at
            idle_since, continues = None, False
        elif at - before > _GAP_SECONDS:
            idle_since, continues = at, False
        elif idle_since is None:
            idle_since = at
        before = at
    return Activity(first_at, busy_at, idle_since, continues)


def devices_json(host: HostWire) -> bytes | None:
    """The per-disk, per-interface and cgroup rates of one sample, names cleaned; None where it has none of them."""
    if not (host.disks or host.interfaces or host.cgroup):
        return None
    for disk in host.disks or ():
        disk.device = clean(disk.device)
    for interface in host.interfaces or ():
        interface.name = clean(interface.name)
    lists = {"disks": host.disks, "interfaces": host.interfaces, "cgroup": host.cgroup}
    return _encode({name: value for name, value in lists.items() if value})


def detail_json(host: HostWire) -> bytes:
    """What host_latest keeps beside its columns."""
    for filesystem in host.filesystems or ():
        filesystem.mount = clean(filesystem.mount)
    devices_json(host)
    found = {
        "disk_scope": clean(host.disk_scope),
        "jupyter_kernels": host.jupyter_kernels,
        "jupyter_last_activity_at": host.jupyter_last_activity_at,
        "disks": host.disks,
        "interfaces": host.interfaces,
        "filesystems": host.filesystems,
        "cgroup": host.cgroup,
    }
    return _encode({name: value for name, value in found.items() if value not in (None, "")})


_health_values = attrgetter(*HEALTH_FIELDS)


def health_json(gpu: GpuWire) -> bytes:
    found: dict[str, Any] = {
        name: value for name, value in zip(HEALTH_FIELDS, _health_values(gpu), strict=True) if value is not None
    }
    if gpu.unavailable:
        found["unavailable"] = clean_map(gpu.unavailable)
    return _encode(found) if found else b"{}"


def processes_json(gpu: GpuWire) -> bytes:
    if not gpu.processes:
        return b"[]"
    return _encode([dict(_process(process)) for process in gpu.processes if process.pid])


def _process(process: Any) -> Iterator[tuple[str, Any]]:
    yield "pid", process.pid
    if process.memory_bytes is not None:
        yield "memory_bytes", process.memory_bytes
    # A PID of another namespace names nobody here, whatever the agent may have looked up.
    if process.resolved and process.name:
        yield "name", clean(process.name)
    if process.resolved and process.user:
        yield "user", clean(process.user)
    yield "resolved", bool(process.resolved)
