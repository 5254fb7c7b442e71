"""What agents send (docs/agent-protocol.md), as msgspec types whose bounds are the physical ranges of the values.

A body inside all bounds is decoded and checked in one pass; one that is not goes through telemetry/sanitise.py, which drops the
values outside and keeps the rest. None = absent. Unknown fields are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

MAX_SAMPLES = 720
MAX_GPUS = 64
MAX_EVENTS = 256
MAX_STRING = 200
MAX_LIST = 64
MAX_PROVIDER_IDS = 32
# A sample may stand for so long.
LONGEST_INTERVAL_SECONDS = 300

# DCGM and NVML write 2^32-1, 2^47 and values near 2^63 where they have none; every bound below lies under the sentinel of its field.
Percent = Annotated[float, Meta(ge=0, le=100)]
FanPercent = Annotated[float, Meta(ge=0, le=200)]  # NVML: may exceed 100 where a fan outruns its nominal speed
Ratio = Annotated[float, Meta(ge=0, le=1)]
GpuBytes = Annotated[int, Meta(ge=0, le=1 << 43)]
HostBytes = Annotated[int, Meta(ge=0, le=1 << 46)]
DiskBytes = Annotated[int, Meta(ge=0, le=1 << 60)]
Watts = Annotated[float, Meta(ge=0, le=5_000)]
Joules = Annotated[float, Meta(ge=0, le=1e13)]
Celsius = Annotated[float, Meta(ge=-40, le=150)]
Megahertz = Annotated[int, Meta(ge=0, le=20_000)]
ReasonMask = Annotated[int, Meta(ge=0, lt=(1 << 32) - 1)]
PcieRate = Annotated[float, Meta(ge=0, le=5e11)]
NvlinkRate = Annotated[float, Meta(ge=0, le=2e13)]
DiskRate = Annotated[float, Meta(ge=0, le=1e12)]
NetworkRate = Annotated[float, Meta(ge=0, le=1e12)]
OperationRate = Annotated[float, Meta(ge=0, le=1e9)]
LatencySeconds = Annotated[float, Meta(ge=0, le=3_600)]
Load = Annotated[float, Meta(ge=0, le=1e6)]
Cores = Annotated[float, Meta(ge=0, le=10_000)]
Count = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
ProcessCount = Annotated[int, Meta(ge=0, le=100_000)]
Pid = Annotated[int, Meta(ge=1, le=1 << 22)]
Epoch = Annotated[float, Meta(ge=0, le=1e11)]

Port = Annotated[int, Meta(ge=0, le=65_535)]
SampleInterval = Annotated[int, Meta(ge=1, le=LONGEST_INTERVAL_SECONDS)]
IntervalSeconds = Annotated[float, Meta(ge=0.001, le=3_600)]
Requests = Annotated[float, Meta(ge=0, le=1e6)]
# What an engine did in an interval: a thousand GPUs do not make 2^40 tokens in an hour.
Growth = Annotated[int, Meta(ge=0, le=1 << 40)]
SpentSeconds = Annotated[float, Meta(ge=0, le=1e12)]
RequestSeconds = Annotated[float, Meta(ge=0, le=1e6)]

Uuid = Annotated[str, Meta(min_length=1, max_length=96)]
EngineName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,39}\\Z")]
ActionName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,39}\\Z")]
EventKind = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,39}\\Z")]
# Free text is cut and cleaned by sanitise.clean, not refused; this bound only keeps absurd ones out.
Text = Annotated[str, Meta(max_length=4_096)]


class Process(Struct, gc=False):
    pid: Pid | None = None
    memory_bytes: GpuBytes | None = None
    name: Text | None = None
    user: Text | None = None
    resolved: bool | None = None


class GpuWire(Struct, gc=False):
    """One GPU in one sample. The first fields are the columns of models.GpuReading, by name."""

    uuid: Uuid
    utilization_percent: Percent | None = None
    memory_utilization_percent: Percent | None = None
    memory_used_bytes: GpuBytes | None = None
    memory_reserved_bytes: GpuBytes | None = None
    sm_activity: Ratio | None = None
    sm_occupancy: Ratio | None = None
    tensor_activity: Ratio | None = None
    dram_activity: Ratio | None = None
    power_watts: Watts | None = None
    power_limit_watts: Watts | None = None
    temperature_celsius: Celsius | None = None
    memory_temperature_celsius: Celsius | None = None
    sm_clock_mhz: Megahertz | None = None
    memory_clock_mhz: Megahertz | None = None
    throttle_reasons: ReasonMask | None = None
    pcie_rx_bytes_per_second: PcieRate | None = None
    pcie_tx_bytes_per_second: PcieRate | None = None
    nvlink_rx_bytes_per_second: NvlinkRate | None = None
    nvlink_tx_bytes_per_second: NvlinkRate | None = None
    process_count: ProcessCount | None = None
    process_memory_bytes: GpuBytes | None = None

    memory_total_bytes: GpuBytes | None = None
    state: Text | None = None

    # Health: no series, only the newest is kept (HEALTH_FIELDS).
    memory_includes_reserved: bool | None = None
    unified_memory: bool | None = None
    energy_joules: Joules | None = None
    fan_percent: FanPercent | None = None
    ecc_corrected: Count | None = None
    ecc_uncorrected: Count | None = None
    remapped_rows_corrected: Count | None = None
    remapped_rows_uncorrected: Count | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    pcie_replays: Count | None = None
    encoder_percent: Percent | None = None
    decoder_percent: Percent | None = None
    unavailable: Annotated[dict[str, Text], Meta(max_length=MAX_LIST)] | None = None
    processes: Annotated[list[Process], Meta(max_length=MAX_LIST)] | None = None


HEALTH_FIELDS = GpuWire.__struct_fields__[GpuWire.__struct_fields__.index("memory_includes_reserved") : -2]


class Disk(Struct, gc=False, omit_defaults=True):
    device: Text
    read_bytes_per_second: DiskRate | None = None
    write_bytes_per_second: DiskRate | None = None
    read_iops: OperationRate | None = None
    write_iops: OperationRate | None = None
    read_latency_seconds: LatencySeconds | None = None
    write_latency_seconds: LatencySeconds | None = None
    busy_percent: Percent | None = None


class Interface(Struct, gc=False, omit_defaults=True):
    name: Text
    rx_bytes_per_second: NetworkRate | None = None
    tx_bytes_per_second: NetworkRate | None = None


class Filesystem(Struct, gc=False, omit_defaults=True):
    mount: Text
    used_bytes: DiskBytes | None = None
    total_bytes: DiskBytes | None = None


class Cgroup(Struct, gc=False, omit_defaults=True):
    read_bytes_per_second: DiskRate | None = None
    write_bytes_per_second: DiskRate | None = None
    read_iops: OperationRate | None = None
    write_iops: OperationRate | None = None
    memory_used_bytes: HostBytes | None = None
    memory_limit_bytes: HostBytes | None = None


class HostWire(Struct, gc=False):
    """The machine itself in one sample. The first fields are the columns of models.HostReading, by name."""

    cpu_percent: Percent | None = None
    cpu_iowait_percent: Percent | None = None
    load1: Load | None = None
    memory_used_bytes: HostBytes | None = None
    pressure_cpu_percent: Percent | None = None
    pressure_memory_percent: Percent | None = None
    pressure_io_percent: Percent | None = None
    disk_read_bytes_per_second: DiskRate | None = None
    disk_write_bytes_per_second: DiskRate | None = None
    disk_read_iops: OperationRate | None = None
    disk_write_iops: OperationRate | None = None
    disk_read_latency_seconds: LatencySeconds | None = None
    disk_write_latency_seconds: LatencySeconds | None = None
    disk_busy_percent: Percent | None = None
    network_rx_bytes_per_second: NetworkRate | None = None
    network_tx_bytes_per_second: NetworkRate | None = None
    filesystem_used_bytes: DiskBytes | None = None
    ssh_sessions: ProcessCount | None = None
    jupyter_busy_kernels: ProcessCount | None = None

    memory_total_bytes: HostBytes | None = None
    filesystem_total_bytes: DiskBytes | None = None
    cpu_limit_cores: Cores | None = None

    disk_scope: Text | None = None
    jupyter_kernels: ProcessCount | None = None
    jupyter_last_activity_at: Epoch | None = None
    disks: Annotated[list[Disk], Meta(max_length=MAX_LIST)] | None = None
    interfaces: Annotated[list[Interface], Meta(max_length=MAX_LIST)] | None = None
    filesystems: Annotated[list[Filesystem], Meta(max_length=MAX_LIST)] | None = None
    cgroup: Cgroup | None = None


class ServingWire(Struct, gc=False):
    """One model of one serving engine in one sample. From `interval_seconds` on they are the columns of serving.models.ServingReading.

    Counts and sums are growth over `interval_seconds`, which is absent where nothing is known of growth.
    """

    engine: EngineName
    model: Text = ""
    port: Port = 0
    interval_seconds: IntervalSeconds | None = None
    requests_running: Requests | None = None
    requests_waiting: Requests | None = None
    kv_cache_ratio: Ratio | None = None
    requests_finished: Growth | None = None
    requests_failed: Growth | None = None
    prompt_tokens: Growth | None = None
    generation_tokens: Growth | None = None
    ttft_seconds_sum: SpentSeconds | None = None
    ttft_count: Growth | None = None
    ttft_seconds_p50: RequestSeconds | None = None
    ttft_seconds_p95: RequestSeconds | None = None
    tpot_seconds_sum: SpentSeconds | None = None
    tpot_count: Growth | None = None
    tpot_seconds_p50: RequestSeconds | None = None
    tpot_seconds_p95: RequestSeconds | None = None
    e2e_seconds_sum: SpentSeconds | None = None
    e2e_count: Growth | None = None
    e2e_seconds_p50: RequestSeconds | None = None
    e2e_seconds_p95: RequestSeconds | None = None


class Sample(Struct, gc=False):
    at: float
    interval_seconds: SampleInterval | None = None
    host: HostWire | None = None
    gpus: Annotated[list[GpuWire], Meta(max_length=MAX_GPUS)] | None = None
    serving: Annotated[list[ServingWire], Meta(max_length=MAX_LIST)] | None = None


class Event(Struct, gc=False):
    at: float
    kind: EventKind
    gpu: Uuid | None = None
    code: Count | None = None
    detail: Text | None = None


class InventoryRow(Struct, gc=False):
    uuid: Uuid
    index: Annotated[int, Meta(ge=0, le=32_767)] = 0
    name: Text | None = None
    memory_total_bytes: GpuBytes | None = None
    pci_bus_id: Text | None = None
    mig_parent: Uuid | None = None
    mig_profile: Text | None = None


Inventory = Annotated[list[InventoryRow], Meta(max_length=MAX_GPUS)]
ProviderIds = Annotated[dict[str, Text], Meta(max_length=MAX_PROVIDER_IDS)]


class Environment(Struct, gc=False, omit_defaults=True):
    hostname: Text | None = None
    os: Text | None = None
    kernel: Text | None = None
    architecture: Text | None = None
    container: Text | None = None
    cpu_model: Text | None = None
    cpu_count: ProcessCount | None = None
    memory_total_bytes: HostBytes | None = None
    boot_id: Text | None = None
    boot_at: Epoch | None = None
    driver: Text | None = None
    cuda_driver: Text | None = None
    nvml: Text | None = None
    cudnn: Text | None = None
    nccl: Text | None = None
    python: Text | None = None
    frameworks: Annotated[dict[str, Text], Meta(max_length=MAX_LIST)] | None = None
    provider_ids: ProviderIds | None = None
    agent_version: Text | None = None
    agent_user: Text | None = None


class Batch(Struct, gc=False):
    """POST /ingest/v1/samples."""

    v: Annotated[int, Meta(ge=1, le=1)]
    sent_at: Epoch
    agent_version: Text = ""
    boot_id: Text = ""
    seq: int = 0
    samples: Annotated[list[Sample], Meta(max_length=MAX_SAMPLES)] | None = None
    events: Annotated[list[Event], Meta(max_length=MAX_EVENTS)] | None = None
    inventory: Inventory | None = None
    environment: Environment | None = None


class Enrolment(Struct, gc=False):
    """POST /ingest/v1/enrol."""

    v: Annotated[int, Meta(ge=1, le=1)]
    agent_version: Text = ""
    hostname: Text = ""
    machine_id: Text = ""
    boot_id: Text = ""
    provider_ids: ProviderIds | None = None
    gpus: Inventory | None = None
    host: Environment | None = None


class NvmlStatus(Struct, gc=False):
    state: Text = ""
    detail: Text | None = None
    since: Epoch | None = None


class Heartbeat(Struct, gc=False):
    """POST /ingest/v1/heartbeat."""

    v: Annotated[int, Meta(ge=1, le=1)]
    sent_at: Epoch
    agent_version: Text = ""
    boot_id: Text = ""
    nvml: NvmlStatus | None = None
    queued_batches: Count | None = None
    oldest_queued_at: Epoch | None = None
    dropped_batches: Count | None = None
    cpu_percent: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    memory_bytes: HostBytes | None = None
    actions: Annotated[list[ActionName], Meta(max_length=8)] | None = None


class ActionReport(Struct):
    """POST /ingest/v1/actions."""

    v: Annotated[int, Meta(ge=1, le=1)]
    id: Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
    state: Literal["running", "done", "failed"]
    result: Annotated[dict[str, Any], Meta(max_length=64)] | None = None
    detail: Text | None = None
