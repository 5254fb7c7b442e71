"""Packed hours of samples. Partitioned by week, kept for RAW_HISTORY_DAYS."""

from __future__ import annotations

from django.db import models

__all__ = ["GpuHour", "HostHour"]


class PackedHour(models.Model):
    """The samples in [hour_at, hour_at + 1 h) of one GPU or machine; `payload` and `overflow` together are read by packed.codec."""

    hour_at = models.DateTimeField()
    samples = models.IntegerField()
    payload = models.BinaryField()
    overflow = models.BinaryField(default=bytes)

    class Meta:
        abstract = True

    @property
    def packed(self) -> bytes:
        return bytes(self.payload) + bytes(self.overflow)


class GpuHour(PackedHour):
    gpu = models.ForeignKey(
        "fleet.GPU", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    pk = models.CompositePrimaryKey("gpu_id", "hour_at")

    class Meta:
        db_table = "gpu_hour"


class HostHour(PackedHour):
    instance = models.ForeignKey(
        "fleet.Instance", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    pk = models.CompositePrimaryKey("instance_id", "hour_at")

    class Meta:
        db_table = "host_hour"
