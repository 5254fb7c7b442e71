"""One run of a machine's own pre-stop action: asked for, and what came of it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

__all__ = ["HookRun", "HookState", "HookWay"]


class HookWay(models.TextChoices):
    AGENT = "agent", _("by its agent")
    SSH = "ssh", _("over SSH")


class HookState(models.TextChoices):
    ASKED = "asked", pgettext_lazy("pre-stop action", "asked for")
    RUNNING = "running", pgettext_lazy("pre-stop action", "running")
    # The machine has no such file.
    NONE = "none", pgettext_lazy("pre-stop action", "none")
    DONE = "done", pgettext_lazy("pre-stop action", "done")
    FAILED = "failed", pgettext_lazy("pre-stop action", "failed")


class HookRun(models.Model):
    """`deadline`: what has not ended by then has failed, because nobody knows what it saved."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="hook_runs")
    way = models.CharField(max_length=8, choices=HookWay)
    state = models.CharField(max_length=8, choices=HookState, default=HookState.ASKED)
    action = models.ForeignKey("fleet.AgentAction", on_delete=models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now)
    deadline = models.DateTimeField()
    # The task was sent to the broker then; it is sent again where nobody takes it.
    sent_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    code = models.CharField(max_length=24, blank=True, help_text="Why it failed: a key of hooks.words.FAILURES.")
    last_line = models.CharField(max_length=300, blank=True, help_text="What it printed last, as the machine sent it.")

    class Meta:
        db_table = "idle_hook_run"
        indexes = [models.Index(fields=["instance", "-asked_at"], name="hook_run_at")]

    def __str__(self) -> str:
        return f"pre-stop of {self.instance_id}: {self.state}"
