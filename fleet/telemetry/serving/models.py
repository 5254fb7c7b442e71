"""Serving endpoints: the newest reading, readings as they came, and sums of five minutes and of an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from fleet.telemetry.serving.columns import COLUMNS, COUNTS, GAUGES, HIGHEST, SUMS

__all__ = ["ServingLatest", "ServingRollupFiveMinutes", "ServingRollupHour", "ServingSample"]


class ServingReading(models.Model):
    """One reading of one endpoint. The columns are those of wire.ServingWire; counts are growth over `interval_seconds`; NULL = not known."""

    if TYPE_CHECKING:
        # The readings, which are added in a loop.
        def __getattr__(self, name: str) -> float | None: ...

    class Meta:
        abstract = True


class ServingSums(models.Model):
    """One bucket of one endpoint: sums of what grew, `…_total` and `…_readings` of gauges for their mean, the highest of percentiles."""

    bucket_at = models.DateTimeField()
    samples = models.IntegerField()

    if TYPE_CHECKING:
        # The readings, which are added in a loop.
        def __getattr__(self, name: str) -> float | None: ...

    class Meta:
        abstract = True


def _field(name: str) -> models.Field[float | None, float | None]:
    return models.BigIntegerField(null=True) if name in COUNTS else models.FloatField(null=True)


for _name in COLUMNS:
    _field(_name).contribute_to_class(ServingReading, _name)
for _name in (*SUMS, *HIGHEST):
    _field(_name).contribute_to_class(ServingSums, _name)
for _name in GAUGES:
    models.FloatField(null=True).contribute_to_class(ServingSums, f"{_name}_total")
    models.IntegerField(default=0).contribute_to_class(ServingSums, f"{_name}_readings")


class ServingLatest(ServingReading):
    """An endpoint: one model of one engine behind one port of a machine; its newest reading, and when it last had a request."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="serving")
    engine = models.CharField(max_length=40)
    model = models.CharField(max_length=200, blank=True)
    port = models.PositiveIntegerField()
    first_seen_at = models.DateTimeField(default=timezone.now)
    sampled_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(null=True)
    last_request_at = models.DateTimeField(
        null=True, help_text="Last reading with a request that ran, waited or ended; NULL = none was seen."
    )

    class Meta:
        db_table = "serving_latest"
        constraints = [models.UniqueConstraint(fields=["instance", "engine", "model", "port"], name="serving_once")]

    def __str__(self) -> str:
        return f"{self.model or self.engine} on port {self.port} of {self.instance}"


def _endpoint() -> models.ForeignKey[ServingLatest, ServingLatest]:
    # No constraint: as with samples of GPUs, orphans go with the next dropped partition.
    return models.ForeignKey(
        "fleet.ServingLatest", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )


class ServingSample(ServingReading):
    """Readings as they came, kept for RAW_RETENTION_DAYS. Daily partitions."""

    endpoint = _endpoint()
    sampled_at = models.DateTimeField()
    pk = models.CompositePrimaryKey("endpoint_id", "sampled_at")

    class Meta:
        db_table = "serving_sample"


class ServingRollupFiveMinutes(ServingSums):
    endpoint = _endpoint()
    pk = models.CompositePrimaryKey("endpoint_id", "bucket_at")

    class Meta:
        db_table = "serving_rollup_5min"


class ServingRollupHour(ServingSums):
    endpoint = _endpoint()
    pk = models.CompositePrimaryKey("endpoint_id", "bucket_at")

    class Meta:
        db_table = "serving_rollup_1h"
