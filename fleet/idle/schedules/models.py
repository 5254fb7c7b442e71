"""Machines that are stopped and started by the clock."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["PowerSchedule", "ScheduleEdge"]


class PowerSchedule(models.Model):
    """On `days` (0 = Monday) its machines are started at `start_at` and stopped at `stop_at`, on the clock of `time_zone` ("" = the team's).

    Either may be NULL. Over midnight where the stop is before the start. `holidays`: as in IdlePolicy; on those days nothing is started.
    Which machines: those named, or, where none is, all of the project or with the label.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="power_schedules")
    name = models.CharField(_("name"), max_length=80)
    enabled = models.BooleanField(default=True)
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    label_name = models.CharField(_("label"), max_length=80, blank=True)
    label_value = models.CharField(max_length=200, blank=True)
    machines: models.ManyToManyField[models.Model, models.Model] = models.ManyToManyField(
        "fleet.Instance", related_name="+", blank=True
    )
    days = models.JSONField(default=list)
    start_at = models.TimeField(null=True, blank=True)
    stop_at = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    holidays = models.CharField(max_length=10, blank=True)
    notice_minutes = models.PositiveIntegerField(default=30)
    accept_loss = models.BooleanField(default=False)
    # Edges before it are none of this schedule's.
    since = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "power_schedule"
        constraints = [
            models.UniqueConstraint(
                "team", "name", name="power_schedule_name_once", condition=Q(removed_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleEdge(models.Model):
    """An edge of a schedule that was dealt with for one machine: what a person does after it is theirs until the next."""

    schedule = models.ForeignKey("fleet.PowerSchedule", on_delete=models.CASCADE, related_name="edges")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="+")
    verb = models.CharField(max_length=12)
    at = models.DateTimeField()
    planned_action = models.ForeignKey("fleet.PlannedAction", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "schedule_edge"
        constraints = [models.UniqueConstraint("schedule", "instance", "at", name="schedule_edge_once")]
