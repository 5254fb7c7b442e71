"""The team's Prometheus servers, and which machine a label of theirs stands for."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

__all__ = ["PrometheusSource", "SourceMachine"]


class PrometheusSource(models.Model):
    """A Prometheus-compatible server that is read for a team. Samples before `read_until` are stored; a claim ends at `next_read_at`."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="prometheus_sources")
    name = models.CharField(max_length=80)
    # What stands before /api/v1/query.
    url = models.CharField(max_length=500)
    # A bearer token, sealed with CREDENTIAL_KEYS; b"" = none.
    token = models.BinaryField(default=bytes, blank=True)
    tenant = models.CharField(max_length=150, blank=True)
    # Matchers that every question has, as in job="dcgm",cluster="a".
    selector = models.CharField(max_length=300, blank=True)
    gpu_label = models.CharField(max_length=80, default="Hostname")
    host_label = models.CharField(max_length=80, default="instance")
    adds_machines = models.BooleanField(default=False)
    interval_seconds = models.PositiveSmallIntegerField(default=30)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    read_until = models.DateTimeField(default=timezone.now)
    next_read_at = models.DateTimeField(default=timezone.now, db_index=True)
    claim = models.UUIDField(null=True)
    last_ok_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed readings since the last good one.")
    error = models.CharField(max_length=24, blank=True)
    error_detail = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="prometheus_source_once")]

    def __str__(self) -> str:
        return self.name


class SourceMachine(models.Model):
    """What one value of the labels stands for. `chosen`: a person said so, and nothing is matched by name any more."""

    source = models.ForeignKey(PrometheusSource, on_delete=models.CASCADE, related_name="machines")
    label = models.CharField(max_length=200)
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    chosen = models.BooleanField(default=False)
    last_at = models.DateTimeField(help_text="Its newest sample.")
    # Between two of its samples.
    sample_seconds = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "label"], name="source_machine_once")]

    def __str__(self) -> str:
        return self.label
