"""How the server of each machine of a serving job stands, and every look at it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

__all__ = ["Probe", "Server", "ServerState"]


class ServerState(models.TextChoices):
    """DOWN: it was up, and did not answer several times in a row. Not reached over SSH is none of these: it stays what it was."""

    STARTING = "starting", pgettext_lazy("server", "starting")
    UP = "up", pgettext_lazy("server", "up")
    DOWN = "down", _("does not answer")


class Server(models.Model):
    """Of one machine of one attempt. `code`, `detail`: what the last look found (words.CODES). `failures`: looks in a row that found it down.

    `short_answers`: seconds that requests for one token took, one after the other, as it became ready. `counters`: what its page of metrics stood at
    (fleet.telemetry.serving.from_page). `read_at`: of the reading that was stored last; `read_by_agent`: the machine's agent reads them, and nobody else.
    """

    node = models.OneToOneField("jobs.Node", on_delete=models.CASCADE, related_name="server")
    state = models.CharField(max_length=8, choices=ServerState, default=ServerState.STARTING)
    since = models.DateTimeField(default=timezone.now)
    ready_at = models.DateTimeField(null=True)
    model_names = models.JSONField(default=list)
    short_answers = models.JSONField(default=list)
    failures = models.PositiveIntegerField(default=0)
    code = models.CharField(max_length=20, blank=True)
    detail = models.CharField(max_length=200, blank=True)
    metrics_code = models.CharField(max_length=20, blank=True)
    counters = models.JSONField(default=dict)
    read_at = models.DateTimeField(null=True)
    read_by_agent = models.BooleanField(default=False)
    looked_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(default=timezone.now)
    claim = models.UUIDField(null=True)

    class Meta:
        indexes = [models.Index(fields=["next_at"], name="job_server_due")]

    def __str__(self) -> str:
        return f"server of {self.node}"


class Probe(models.Model):
    """One look. `is_up` None: the machine was not reached, so nobody knows. `seconds`: until its health was answered.

    `memory_bytes`: of all processes of the job, what is theirs alone and in no file, swapped out or not.
    """

    server = models.ForeignKey("jobs.Server", on_delete=models.CASCADE, related_name="probes")
    at = models.DateTimeField()
    is_up = models.BooleanField(null=True)
    seconds = models.FloatField(null=True)
    code = models.CharField(max_length=20, blank=True)
    memory_bytes = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("server", "at", name="job_probe_once")]
        indexes = [models.Index(fields=["at"], name="job_probe_at")]

    def __str__(self) -> str:
        return f"{self.code or 'up'} at {self.at:%Y-%m-%d %H:%M:%S}"
