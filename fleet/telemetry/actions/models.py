"""The few fixed actions that a machine's agent runs when it is asked to, by name; never text from here."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["AgentAction", "AgentActionName", "AgentActionState"]


class AgentActionName(models.TextChoices):
    ACCEPT = "accept", _("acceptance test")
    PRE_STOP = "pre_stop", _("the machine's own pre-stop action")


class AgentActionState(models.TextChoices):
    ASKED = "asked", _("asked for")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    # The agent answered nothing in time, or does not know it.
    LOST = "lost", _("no answer")


class AgentAction(models.Model):
    """`options`: numbers and fixed words that the action takes, never a command. `result`: what the agent sent, cleaned."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="agent_actions")
    name = models.CharField(max_length=16, choices=AgentActionName)
    state = models.CharField(max_length=8, choices=AgentActionState, default=AgentActionState.ASKED)
    options = models.JSONField(default=dict)
    asked_at = models.DateTimeField(default=timezone.now)
    asked_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    # Not run after it: an agent that comes back hours later must not do what nobody waits for any more.
    expires_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    result = models.JSONField(default=dict)
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "agent_action"
        indexes = [
            models.Index(
                fields=["instance"], name="agent_action_open", condition=models.Q(state__in=("asked", "running"))
            ),
            models.Index(fields=["instance", "-asked_at"], name="agent_action_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.instance_id}"
