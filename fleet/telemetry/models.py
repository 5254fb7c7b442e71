"""What machines measured. Samples are partitioned by day and read by span; *_latest rows are all that tiles, alerts and idle rules read."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = [
    "Agent",
    "EnrolmentToken",
    "GpuLatest",
    "GpuSample",
    "HostLatest",
    "HostSample",
    "MachineEvent",
    "ScrapeTarget",
]


class EnrolmentToken(models.Model):
    """Lets agents in: any machine of a team, or one instance only. Its SHA-256 is kept."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="enrolment_tokens")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField(default=1)
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… for {self.team}"


class Agent(models.Model):
    """The agent of one machine: its token, what it last said of itself, and what the server had to refuse."""

    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, related_name="agent")
    token_hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    enrolled_at = models.DateTimeField(default=timezone.now)
    enrolled_from = models.GenericIPAddressField(null=True, help_text="Where its connection came from, as seen here.")
    revoked_at = models.DateTimeField(null=True)
    machine_id = models.CharField(max_length=64, blank=True)
    hostname = models.CharField(max_length=200, blank=True)
    provider_ids = models.JSONField(default=dict)
    # Why its provider ids were not matched to a listed machine, for a person to settle; "" = matched or nothing to match.
    match_conflict = models.CharField(max_length=300, blank=True)
    version = models.CharField(max_length=40, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    batch_at = models.DateTimeField(null=True)
    clock_skew_seconds = models.FloatField(null=True)
    clock_jumped_at = models.DateTimeField(null=True, help_text="When the correction of its clock last changed.")
    nvml_state = models.CharField(max_length=16, blank=True)
    nvml_detail = models.CharField(max_length=200, blank=True)
    nvml_since = models.DateTimeField(null=True)
    queued_batches = models.PositiveIntegerField(default=0)
    oldest_queued_at = models.DateTimeField(null=True)
    # Batches that the agent itself had to give up: its ring was full, or the server refused them for good.
    lost_batches = models.PositiveIntegerField(default=0)
    cpu_percent = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    # {"utilization_percent": 3}: values outside their physical range, dropped by the server since enrolment.
    dropped_values = models.JSONField(default=dict)
    interval_seconds = models.PositiveSmallIntegerField(default=5)
    report_seconds = models.PositiveSmallIntegerField(default=10)
    paused = models.BooleanField(default=False)
    # The fixed actions that it said it would run, with its last heartbeat.
    actions = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"agent of {self.instance}"


class GpuReading(models.Model):
    """One reading of one GPU. Percent 0-100, activity ratios 0-1, NULL = not read."""

    utilization_percent = models.FloatField(null=True)
    memory_utilization_percent = models.FloatField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)
    memory_reserved_bytes = models.BigIntegerField(null=True)
    sm_activity = models.FloatField(null=True)
    sm_occupancy = models.FloatField(null=True)
    tensor_activity = models.FloatField(null=True)
    dram_activity = models.FloatField(null=True)
    power_watts = models.FloatField(null=True)
    power_limit_watts = models.FloatField(null=True)
    temperature_celsius = models.FloatField(null=True)
    memory_temperature_celsius = models.FloatField(null=True)
    sm_clock_mhz = models.IntegerField(null=True)
    memory_clock_mhz = models.IntegerField(null=True)
    throttle_reasons = models.BigIntegerField(null=True)
    pcie_rx_bytes_per_second = models.FloatField(null=True)
    pcie_tx_bytes_per_second = models.FloatField(null=True)
    nvlink_rx_bytes_per_second = models.FloatField(null=True)
    nvlink_tx_bytes_per_second = models.FloatField(null=True)
    process_count = models.IntegerField(null=True)
    process_memory_bytes = models.BigIntegerField(null=True)

    class Meta:
        abstract = True


class GpuSample(GpuReading):
    """Raw readings, kept for RAW_RETENTION_DAYS. Daily partitions; there is no surrogate key, so a replayed batch stores nothing twice."""

    # No constraint: checking it on the hot path costs more than the orphan rows that the next dropped partition takes along.
    gpu = models.ForeignKey(
        "fleet.GPU", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    sampled_at = models.DateTimeField()
    # A code of fleet.telemetry.state_codes, judged as the sample came in; NULL: stored before there was one.
    state = models.PositiveSmallIntegerField(null=True)
    # For how long it stands: what its sender said; NULL: as long as the machine's own pace says (rollups/statements.py).
    interval_seconds = models.PositiveSmallIntegerField(null=True)
    pk = models.CompositePrimaryKey("gpu_id", "sampled_at")

    class Meta:
        db_table = "gpu_sample"


class HostReading(models.Model):
    """One reading of a machine itself. Rates are a second's, made on the agent; NULL = not read."""

    cpu_percent = models.FloatField(null=True)
    cpu_iowait_percent = models.FloatField(null=True)
    load1 = models.FloatField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)
    pressure_cpu_percent = models.FloatField(null=True)
    pressure_memory_percent = models.FloatField(null=True)
    pressure_io_percent = models.FloatField(null=True)
    disk_read_bytes_per_second = models.FloatField(null=True)
    disk_write_bytes_per_second = models.FloatField(null=True)
    disk_read_iops = models.FloatField(null=True)
    disk_write_iops = models.FloatField(null=True)
    disk_read_latency_seconds = models.FloatField(null=True)
    disk_write_latency_seconds = models.FloatField(null=True)
    disk_busy_percent = models.FloatField(null=True)
    network_rx_bytes_per_second = models.FloatField(null=True)
    network_tx_bytes_per_second = models.FloatField(null=True)
    filesystem_used_bytes = models.BigIntegerField(null=True)
    ssh_sessions = models.IntegerField(null=True)
    jupyter_busy_kernels = models.IntegerField(null=True)

    class Meta:
        abstract = True


class HostSample(HostReading):
    """Raw readings of machines, kept and like GpuSample. `devices` keeps the per-disk, per-interface and cgroup rates."""

    instance = models.ForeignKey(
        "fleet.Instance", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    sampled_at = models.DateTimeField()
    devices = models.JSONField(null=True)
    interval_seconds = models.PositiveSmallIntegerField(null=True)
    pk = models.CompositePrimaryKey("instance_id", "sampled_at")

    class Meta:
        db_table = "host_sample"


class GpuLatest(GpuReading):
    """The newest reading of a GPU; moves forward only. `health` holds what is no series: ECC, remapped rows, reasons for absent values."""

    gpu = models.OneToOneField("fleet.GPU", on_delete=models.CASCADE, primary_key=True, related_name="latest")
    sampled_at = models.DateTimeField()
    received_at = models.DateTimeField()
    memory_total_bytes = models.BigIntegerField(null=True)
    lost = models.BooleanField(default=False)
    health = models.JSONField(default=dict)
    processes = models.JSONField(default=list)
    busy_at = models.DateTimeField(null=True, help_text="Last reading that showed work.")
    idle_since = models.DateTimeField(
        null=True, help_text="First of the unbroken readings without work; NULL = working or not known."
    )

    class Meta:
        db_table = "gpu_latest"


class HostLatest(HostReading):
    """The newest reading of a machine. `detail` holds the lists: disks, interfaces, filesystems, cgroup, sessions."""

    instance = models.OneToOneField(
        "fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="host_latest"
    )
    sampled_at = models.DateTimeField()
    received_at = models.DateTimeField()
    memory_total_bytes = models.BigIntegerField(null=True)
    filesystem_total_bytes = models.BigIntegerField(null=True)
    cpu_limit_cores = models.FloatField(null=True)
    detail = models.JSONField(default=dict)

    class Meta:
        db_table = "host_latest"


class MachineEvent(models.Model):
    """Something that happened on a machine at one moment: an XID, a lost GPU, a hung driver. An event is a row; a second equal XID is a second row."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="events")
    gpu = models.ForeignKey("fleet.GPU", on_delete=models.CASCADE, null=True, related_name="events")
    at = models.DateTimeField()
    received_at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=40)
    code = models.IntegerField(null=True)
    detail = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = [models.Index(fields=["instance", "-at"], name="event_instance_at")]
        constraints = [
            models.UniqueConstraint("instance", "gpu", "at", "kind", "code", name="event_once", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.instance} at {self.at:%Y-%m-%d %H:%M:%S}"


class ScrapeKind(models.TextChoices):
    AUTO = "auto", _("found out")
    AGENT = "agent", _("Rackrent's agent")
    DCGM = "dcgm", "dcgm-exporter"
    NODE = "node", "node_exporter"
    NVIDIA_GPU = "nvidia_gpu", "nvidia_gpu_exporter"


class ScrapeTarget(models.Model):
    """An exporter that is read for one machine. A claim is the right of one worker to read it; it ends at `next_scrape_at`."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="scrape_targets")
    url = models.CharField(max_length=500)
    # user@host:port through which `url`, then on the machine's own loopback, is reached; "" = directly.
    ssh = models.CharField(max_length=330, blank=True)
    kind = models.CharField(max_length=12, choices=ScrapeKind, default=ScrapeKind.AUTO)
    # A bearer token, sealed with CREDENTIAL_KEYS; b"" = none.
    token = models.BinaryField(default=bytes, blank=True)
    interval_seconds = models.PositiveSmallIntegerField(default=30)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    next_scrape_at = models.DateTimeField(default=timezone.now, db_index=True)
    claim = models.UUIDField(null=True, db_index=True)
    last_ok_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed scrapes since the last good one.")
    error = models.CharField(max_length=24, blank=True)
    error_detail = models.CharField(max_length=200, blank=True)
    # What its page held at the last good scrape.
    gives_gpus = models.BooleanField(default=False)
    gives_host = models.BooleanField(default=False)
    # Why nothing of it was stored the last time although it could be read: "agent", "exporter", or "".
    yields_to = models.CharField(max_length=12, blank=True)
    # What its counters stood at (scrape.history).
    memory = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "url"], name="scrape_target_once")]

    def __str__(self) -> str:
        return f"{self.url} of {self.instance}"
