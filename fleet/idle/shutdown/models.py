"""One idle stop from its candidate to its proof, each step of it, and what it saved."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import pgettext_lazy

__all__ = ["IdleSaving", "IdleStop", "IdleStopEvent", "IdleStopStage"]


class IdleStopStage(models.TextChoices):
    """fleet.idle.shutdown.course.Stage, with its words; `cancelled` is a course that went back to watching."""

    WATCHING = "watching", pgettext_lazy("idle stop", "watching")
    WARNED = "warned", pgettext_lazy("idle stop", "warning is on its way")
    GRACE = "grace", pgettext_lazy("idle stop", "warned")
    PRESTOP = "prestop", pgettext_lazy("idle stop", "preparing")
    STOPPING = "stopping", pgettext_lazy("idle stop", "stop ordered")
    VERIFYING = "verifying", pgettext_lazy("idle stop", "being proved")
    STOPPED = "stopped", pgettext_lazy("idle stop", "stopped")
    FAILED = "failed", pgettext_lazy("idle stop", "not stopped")
    CANCELLED = "cancelled", pgettext_lazy("idle stop", "called off")


OPEN = Q(stage__in=("watching", "warned", "grace", "prestop", "stopping", "verifying", "failed"))

# Over, and somebody is still to hear of it.
UNTOLD = ~Q(pending=[])


class IdleStop(models.Model):
    """The columns from `stage` to `why` are course.Course; `terms`: course.Terms as the policy had them when it began, in seconds.

    One is open per machine. Whoever holds `claim` until `claimed_until` takes the next step; two never act at once. `because`: the
    verdict's reasons as it began. `snoozed_until`, `vetoed_at`: people's word against it; `hurried_at`: for it, whatever grace and office hours say.
    `pending`: the acts (course.Act) of the last step that nobody has carried out yet: written with the step, taken off with what they did.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="idle_stops")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="idle_stops")
    policy = models.ForeignKey("fleet.IdlePolicy", on_delete=models.SET_NULL, null=True, related_name="stops")
    policy_name = models.CharField(max_length=80)
    verb = models.CharField(max_length=12)
    terms = models.JSONField(default=dict)
    because = models.JSONField(default=list)
    quiet_since = models.DateTimeField(null=True)
    # What an hour of it cost as it began; NULL = not known.
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, default="USD")

    stage = models.CharField(max_length=12, choices=IdleStopStage)
    since = models.DateTimeField()
    deadline = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    ordered_at = models.DateTimeField(null=True)
    orders = models.PositiveIntegerField(default=0)
    told_at = models.DateTimeField(null=True)
    rests_until = models.DateTimeField(null=True)
    why = models.CharField(max_length=40, blank=True)

    hook = models.CharField(max_length=8, default="none", help_text="course.Hook")
    hook_detail = models.CharField(max_length=500, blank=True)
    hook_started_at = models.DateTimeField(null=True)
    hook_run = models.ForeignKey("fleet.HookRun", on_delete=models.SET_NULL, null=True, related_name="+")
    pending = models.JSONField(default=list)
    operation = models.ForeignKey("fleet.Operation", on_delete=models.SET_NULL, null=True, related_name="+")
    refused = models.CharField(max_length=40, blank=True, help_text="Code of the refusal of the last order.")
    snoozed_until = models.DateTimeField(null=True)
    snoozes = models.PositiveIntegerField(default=0)
    vetoed_at = models.DateTimeField(null=True)
    hurried_at = models.DateTimeField(null=True)
    # Reminders that went out, minutes before the stop.
    reminded = models.JSONField(default=list)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(default=timezone.now)
    began_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "idle_stop"
        constraints = [models.UniqueConstraint("instance", name="idle_stop_open_once", condition=OPEN)]
        indexes = [
            models.Index(fields=["next_at"], name="idle_stop_due", condition=OPEN),
            models.Index(fields=["next_at"], name="idle_stop_untold", condition=UNTOLD),
            models.Index(fields=["team", "-began_at"], name="idle_stop_team_at"),
            models.Index(fields=["instance", "-ended_at"], name="idle_stop_instance_ended"),
        ]

    def __str__(self) -> str:
        return f"idle {self.verb} of {self.instance}"


class IdleStopEvent(models.Model):
    """A step of a stop. `kind`: a stage that was entered, or snoozed, vetoed, reminded, hook_done, hook_failed, told, ordered."""

    stop = models.ForeignKey("fleet.IdleStop", on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=20)
    by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    by_label = models.CharField(max_length=200, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    values = models.JSONField(default=dict)

    class Meta:
        db_table = "idle_stop_event"
        indexes = [models.Index(fields=["stop", "at"], name="idle_stop_event_at")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"


class IdleSaving(models.Model):
    """What a machine did not cost because it was stopped, from the moment that its provider proved. It grows until the machine runs again.

    `until` NULL: it still grows; it never grows beyond `most_until`. `amount`: price per hour, less what a stopped one costs, times the hours up to
    `counted_until`.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="idle_savings")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="+")
    stop = models.OneToOneField("fleet.IdleStop", on_delete=models.CASCADE, null=True, related_name="saving")
    planned_action = models.OneToOneField(
        "fleet.PlannedAction", on_delete=models.CASCADE, null=True, related_name="saving"
    )
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    most_until = models.DateTimeField()
    counted_until = models.DateTimeField()
    gpu_count = models.PositiveIntegerField(null=True)
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3)
    amount = models.DecimalField(max_digits=16, decimal_places=6, default=0)

    class Meta:
        db_table = "idle_saving"
        indexes = [models.Index(fields=["team", "since"], name="idle_saving_team_at")]
