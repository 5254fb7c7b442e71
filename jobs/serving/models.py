"""Servers that jobs run: whether they are ready, load tests, and gateways in front of several."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import pgettext_lazy

__all__ = ["Gateway", "LoadTest", "LoadTestState", "Probe"]


class Probe(models.Model):
    """What a node's server answered last. `ready_at`: since when without a break; `restarts`: by the restart policy, of this attempt."""

    node = models.OneToOneField("jobs.Node", on_delete=models.CASCADE, primary_key=True, related_name="probe")
    asked_at = models.DateTimeField()
    ok = models.BooleanField()
    first_ready_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(null=True)
    models_served = models.JSONField(default=list)
    engine = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=200, blank=True)
    restarts = models.PositiveIntegerField(default=0)


class LoadTestState(models.TextChoices):
    WAITING = "waiting", pgettext_lazy("load test", "waiting")
    RUNNING = "running", pgettext_lazy("load test", "running")
    DONE = "done", pgettext_lazy("load test", "done")
    FAILED = "failed", pgettext_lazy("load test", "failed")
    CANCELLED = "cancelled", pgettext_lazy("load test", "cancelled")


class LoadTest(models.Model):
    """Bounded requests at growing concurrency. `options`: concurrencies, seconds of each, tokens in and out; `stages`: what each gave; `advice`: the knee and what to set."""

    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, related_name="load_tests")
    state = models.CharField(max_length=10, choices=LoadTestState, default=LoadTestState.WAITING)
    options = models.JSONField(default=dict)
    stages = models.JSONField(default=list)
    advice = models.JSONField(default=dict)
    asked_at = models.DateTimeField(default=timezone.now)
    asked_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=200, blank=True)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)


class Gateway(models.Model):
    """nginx on one machine in front of the replicas of serving jobs: queue, rate limit, time-out, 429 with Retry-After. `options`: its limits."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="gateways")
    name = models.CharField(max_length=80)
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="+")
    jobs: models.ManyToManyField[models.Model, models.Model] = models.ManyToManyField(
        "jobs.Job", related_name="gateways"
    )
    port = models.PositiveIntegerField()
    options = models.JSONField(default=dict)
    configured_at = models.DateTimeField(null=True)
    config_sha256 = models.CharField(max_length=64, blank=True)
    ok_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    removed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
