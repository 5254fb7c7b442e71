"""Is a machine what it was rented as, and does its host serve it as well as before."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["AcceptanceReport", "AcceptanceVerdict", "HealthDay", "NeighbourEvidence"]


class AcceptanceVerdict(models.TextChoices):
    PASS = "pass", _("as rented")
    SHORT = "short", _("short of what was promised")
    NOT_AS_RENTED = "not_as_rented", _("not what was rented")
    # Too little could be measured.
    UNCLEAR = "unclear", _("not clear")


class AcceptanceReport(models.Model):
    """One acceptance test. `checks`: [{"name", "promised", "measured", "unit", "result", "source"}] as of quality.acceptance; `promised` and
    `measured` are what they were made from. `action` is NULL where what is known without a test was enough.
    """

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="acceptance_reports")
    action = models.OneToOneField("fleet.AgentAction", on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    verdict = models.CharField(max_length=16, choices=AcceptanceVerdict)
    checks = models.JSONField(default=list)
    promised = models.JSONField(default=dict)
    measured = models.JSONField(default=dict)

    class Meta:
        db_table = "acceptance_report"
        indexes = [models.Index(fields=["instance", "-at"], name="acceptance_instance_at")]


class NeighbourEvidence(models.Model):
    """How much a shared host's other tenants seem to take, 0 (nothing) to 100, over one hour; `reasons`: [{"code", "before", "now"}]."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="neighbour_evidence")
    hour = models.DateTimeField()
    score = models.PositiveSmallIntegerField()
    reasons = models.JSONField(default=list)

    class Meta:
        db_table = "neighbour_evidence"
        constraints = [models.UniqueConstraint("instance", "hour", name="neighbour_hour_once")]
        indexes = [models.Index(fields=["-hour", "id"], name="neighbour_hour")]


class HealthDay(models.Model):
    """What went wrong on one machine on one day (UTC): counts by kind, and seconds of throttling and of lost GPUs."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="health_days")
    # Kept beside the machine: its account may be disconnected.
    provider = models.CharField(max_length=40)
    day = models.DateField()
    gpu_hours = models.FloatField(default=0)
    counts = models.JSONField(default=dict)
    throttled_seconds = models.FloatField(default=0)
    lost_seconds = models.FloatField(default=0)
    score = models.PositiveSmallIntegerField(null=True)

    class Meta:
        db_table = "health_day"
        constraints = [models.UniqueConstraint("instance", "day", name="health_day_once")]
        indexes = [
            models.Index(fields=["provider", "day"], name="health_provider_day"),
            models.Index(fields=["-day", "id"], name="health_day_day"),
        ]
