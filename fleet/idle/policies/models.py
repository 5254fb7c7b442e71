"""What a team wants done with machines that are idle, and what it says of single machines."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.words import TENANCIES, choices

__all__ = ["IdleAction", "IdlePolicy", "IdleWindowFrom", "MachineUse", "UseMode"]


class UseMode(models.TextChoices):
    """How machines are used: fleet.idle.verdict.evidence.Mode, with its words."""

    INTERACTIVE = "interactive", _("interactive")
    BATCH = "batch", _("batch")
    SERVING = "serving", _("serving")
    PINNED = "pinned", _("pinned, never idle")


class IdleAction(models.TextChoices):
    ALERT = "alert", _("only tell")
    STOP = "stop", _("stop")
    TERMINATE = "terminate", _("terminate")


class IdleWindowFrom(models.TextChoices):
    FIXED = "fixed", _("a fixed time")
    RECOMMENDED = "recommended", _("what history recommends")


class IdlePolicy(models.Model):
    """Of a machine the first that covers it counts, by `position`. NULL and "" of the scope: all.

    Times are minutes. `limits`: fields of verdict.limits.Limits that differ from their defaults. Office hours are [from, until) on the team's
    days of `office_days` (0 = Monday) in `time_zone` ("" = the team's); while they last, what is idle is told and not stopped. `max_age_hours`:
    no machine that it covers is older without a person's word. Machines are deleted so long after a stop only with `delete_consent_at`.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="idle_policies")
    name = models.CharField(_("name"), max_length=80)
    position = models.PositiveIntegerField(default=100)
    enabled = models.BooleanField(default=True)
    # Which machines.
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    account = models.ForeignKey(
        "fleet.ProviderAccount", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    provider = models.CharField(_("provider"), max_length=40, blank=True)
    tenancy = models.CharField(_("tenancy"), max_length=16, choices=choices(TENANCIES), blank=True)
    label_name = models.CharField(_("label"), max_length=80, blank=True)
    label_value = models.CharField(max_length=200, blank=True)
    excluded: models.ManyToManyField[models.Model, models.Model] = models.ManyToManyField(
        "fleet.Instance", related_name="+", blank=True
    )
    # What idle means.
    mode = models.CharField(_("used as"), max_length=12, choices=UseMode, default=UseMode.INTERACTIVE)
    window_from = models.CharField(max_length=12, choices=IdleWindowFrom, default=IdleWindowFrom.FIXED)
    window_minutes = models.PositiveIntegerField(_("idle for"), default=60)
    # GPU-hours, in which the recommendation weighs a wrong stop; NULL: restart time times the machine's GPUs.
    wrong_stop_gpu_hours = models.FloatField(null=True, blank=True)
    restart_minutes = models.PositiveIntegerField(default=20)
    limits = models.JSONField(default=dict, blank=True)
    # What is done, and when.
    action = models.CharField(_("then"), max_length=12, choices=IdleAction, default=IdleAction.ALERT)
    grace_minutes = models.PositiveIntegerField(default=30)
    # Before the stop, beside the first warning: [10] = ten minutes before.
    warn_minutes = models.JSONField(default=list, blank=True)
    accept_loss = models.BooleanField(default=False)
    stop_without_hook = models.BooleanField(default=False)
    hook_minutes = models.PositiveIntegerField(default=10)
    office_days = models.JSONField(default=list, blank=True)
    office_from = models.TimeField(null=True, blank=True)
    office_until = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    # ISO 3166 country, with a subdivision after a hyphen ("CN", "DE-BY"): whose holidays are no office days.
    holidays = models.CharField(max_length=10, blank=True)
    max_age_hours = models.PositiveIntegerField(null=True, blank=True)
    delete_after_days = models.PositiveIntegerField(null=True, blank=True)
    delete_consent_at = models.DateTimeField(null=True, blank=True)
    delete_consent_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)
    # Grows with each change: what was dry-run before it is of another policy.
    revision = models.PositiveIntegerField(default=1)
    removed_at = models.DateTimeField(null=True)
    # The window that history recommends (dryrun), when it was reckoned and its words' values; NULL window: better not to stop.
    recommended_minutes = models.PositiveIntegerField(null=True)
    recommended_at = models.DateTimeField(null=True)
    recommendation = models.JSONField(default=dict)

    class Meta:
        db_table = "idle_policy"
        constraints = [
            models.UniqueConstraint("team", "name", name="idle_policy_name_once", condition=Q(removed_at__isnull=True)),
            models.CheckConstraint(condition=Q(window_minutes__gte=5), name="idle_policy_window"),
        ]
        indexes = [models.Index(fields=["team", "position"], name="idle_policy_order")]

    def __str__(self) -> str:
        return self.name


class MachineUse(models.Model):
    """What people say of one machine: how it is used ("" = as its policy says), and how long it may run at most.

    `pre_stop`: who runs the machine's own hook before a stop. `lease_until`: extended by a person, else it is planned to end.
    """

    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="use")
    mode = models.CharField(max_length=12, choices=UseMode, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "machine_use"
