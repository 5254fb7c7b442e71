"""Rollup tables, how far they are, and which buckets got late samples. Kept for as long as settings say (partitions.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from fleet.telemetry.rollups.columns import GPU_ROLLED, HOST_ROLLED, STATISTICS

__all__ = [
    "GpuRollupFiveMinutes",
    "GpuRollupHour",
    "GpuStateTotal",
    "HostRollupFiveMinutes",
    "HostRollupHour",
    "LateBucket",
    "RollupProgress",
]


class RealField(models.FloatField):  # type: ignore[type-arg]
    """Four bytes: seven digits are more than a sensor has, and there are four of these for every reading."""

    def db_type(self, connection: Any) -> str:
        return "real"


class Rollup(models.Model):
    """One bucket [bucket_at, bucket_at + width) of one GPU or machine. `coverage`: share (0-1) of the expected samples that came."""

    bucket_at = models.DateTimeField()
    samples = models.IntegerField()
    coverage = RealField()

    if TYPE_CHECKING:
        # The statistics, which are added in a loop.
        def __getattr__(self, name: str) -> float | None: ...

    class Meta:
        abstract = True


class GpuStatistics(Rollup):
    """Seconds in each state add up to the bucket: time without samples is unknown, or stopped where listings showed the machine off.

    `<reading>_min|avg|max|p95` are added below; NULL = not read in this bucket.
    """

    gpu = models.ForeignKey(
        "fleet.GPU", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    # By which charts of the fleet count it; NULL: rolled up before there were groups.
    group = models.ForeignKey(
        "fleet.RollupGroup",
        on_delete=models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    working_seconds = RealField()
    held_seconds = RealField()
    free_seconds = RealField()
    starved_seconds = RealField()
    stalled_seconds = RealField()
    unknown_seconds = RealField()
    stopped_seconds = RealField()
    throttle_reasons = models.BigIntegerField(null=True, help_text="Every bit that was set at any time.")

    class Meta:
        abstract = True


class HostStatistics(Rollup):
    """`<reading>_min|avg|max|p95` are added below; a machine that said nothing has no row."""

    instance = models.ForeignKey(
        "fleet.Instance", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        abstract = True


for _model, _readings in ((GpuStatistics, GPU_ROLLED), (HostStatistics, HOST_ROLLED)):
    for _reading in _readings:
        for _statistic in STATISTICS:
            RealField(null=True).contribute_to_class(_model, f"{_reading}_{_statistic}")


class GpuRollupFiveMinutes(GpuStatistics):
    pk = models.CompositePrimaryKey("gpu_id", "bucket_at")

    class Meta:
        db_table = "gpu_rollup_5min"


class GpuRollupHour(GpuStatistics):
    pk = models.CompositePrimaryKey("gpu_id", "bucket_at")

    class Meta:
        db_table = "gpu_rollup_1h"


class HostRollupFiveMinutes(HostStatistics):
    pk = models.CompositePrimaryKey("instance_id", "bucket_at")

    class Meta:
        db_table = "host_rollup_5min"


class HostRollupHour(HostStatistics):
    pk = models.CompositePrimaryKey("instance_id", "bucket_at")

    class Meta:
        db_table = "host_rollup_1h"


class RollupProgress(models.Model):
    """Every bucket before `rolled_until` is rolled; of the next one, the GPUs before `next_gpu_id`."""

    resolution = models.CharField(max_length=8, primary_key=True)
    rolled_until = models.DateTimeField()
    next_gpu_id = models.BigIntegerField(default=0)

    class Meta:
        db_table = "rollup_progress"

    def __str__(self) -> str:
        return f"{self.resolution} until {self.rolled_until:%Y-%m-%d %H:%M}"


class GpuStateTotal(models.Model):
    """Seconds in each state since the GPU is counted (totals.py); they only grow."""

    gpu = models.OneToOneField("fleet.GPU", on_delete=models.CASCADE, primary_key=True, related_name="+")
    working_seconds = models.FloatField()
    held_seconds = models.FloatField()
    free_seconds = models.FloatField()
    starved_seconds = models.FloatField()
    stalled_seconds = models.FloatField()
    unknown_seconds = models.FloatField()
    stopped_seconds = models.FloatField()

    class Meta:
        db_table = "gpu_state_total"


class LateBucket(models.Model):
    """A bucket that got samples after its end, to be rolled again. Append-only for ingest, which waits for nobody; repeats mean nothing."""

    instance = models.ForeignKey(
        "fleet.Instance", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    bucket_at = models.DateTimeField()
    bucket_seconds = models.PositiveSmallIntegerField()

    class Meta:
        db_table = "rollup_late"
        indexes = [models.Index(fields=["bucket_seconds", "bucket_at"], name="rollup_late_bucket")]
