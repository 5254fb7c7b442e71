"""Rows that rooms above write downwards: what may not be launched, and what is to be done with a machine at a time."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["STANDING", "LaunchBlock", "PlannedAction", "PlannedActionState", "PlannedActionVerb"]


class LaunchBlock(models.Model):
    """While it is not lifted, launches that it covers are refused. NULL account, project and owner: all of the team's.

    `source` names who wrote it ("budget:7"); one is in force per source.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="launch_blocks")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.CASCADE, null=True, related_name="+")
    source = models.CharField(max_length=60)
    reason = models.CharField(max_length=300)
    # What the words of its source are made of in the reader's language (reasons.py), JSON-ready.
    values = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True)
    # Why a person lifted it, "" where what it was written for is over.
    lifted_reason = models.CharField(max_length=300, blank=True)
    lifted_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team", "source", name="launch_block_once", condition=models.Q(lifted_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.source} of {self.team_id}"


class PlannedActionVerb(models.TextChoices):
    STOP = "stop", _("stop")
    TERMINATE = "terminate", _("terminate")
    START = "start", _("start")


class PlannedActionState(models.TextChoices):
    PLANNED = "planned", _("planned")
    CANCELLED = "cancelled", _("cancelled")
    TAKEN = "taken", _("taken up")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


# Still to be done, and may be called off: what failed is tried again until somebody does.
STANDING = (PlannedActionState.PLANNED, PlannedActionState.FAILED)


class PlannedAction(models.Model):
    """What is to be done with one machine at `due_at`, by whom it was asked and why. Carried out by the idle room; it stands in the calendar.

    One is planned per machine and source. `notified_at`: when the owner was told, without which nothing is stopped or terminated; a start needs no notice.

    planned → taken (an operation is written) → done (it is proved) | failed → taken …; what stands may be called off.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="planned_actions")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="planned_actions")
    verb = models.CharField(max_length=12, choices=PlannedActionVerb)
    due_at = models.DateTimeField()
    source = models.CharField(max_length=60)
    reason = models.CharField(max_length=300)
    # What the words of its source are made of in the reader's language (reasons.py), JSON-ready.
    values = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=PlannedActionState, default=PlannedActionState.PLANNED)
    notified_at = models.DateTimeField(null=True)
    notice_seconds = models.PositiveIntegerField(
        default=0, help_text="From when its owner was told, it waits that long."
    )
    created_at = models.DateTimeField(default=timezone.now)
    planned_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    next_at = models.DateTimeField(null=True, help_text="When it is tried again; NULL: it was not tried yet.")
    waits_for = models.CharField(max_length=40, blank=True, help_text="What keeps it back: planned.words.WAITS.")
    attempts = models.PositiveIntegerField(default=0, help_text="Operations that were written for it.")
    error_kind = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=500, blank=True)
    failed_at = models.DateTimeField(null=True, help_text="The first time; NULL: it has not failed.")
    hook_run = models.ForeignKey("fleet.HookRun", on_delete=models.SET_NULL, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    # Why it was called off: what a person said, or a key of actions.ENDED_WORDS.
    ended_reason = models.CharField(max_length=300, blank=True)
    ended_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    operation = models.ForeignKey("fleet.Operation", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "instance", "source", name="planned_action_once", condition=models.Q(state="planned")
            )
        ]
        indexes = [
            models.Index(fields=["team", "state", "due_at"], name="planned_action_due"),
            models.Index(
                fields=["due_at"],
                name="planned_action_open",
                condition=models.Q(state__in=("planned", "taken", "failed")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.instance_id} at {self.due_at}"

    @property
    def notice(self) -> timedelta:
        return timedelta(seconds=self.notice_seconds)

    @property
    def is_standing(self) -> bool:
        return self.state in STANDING
