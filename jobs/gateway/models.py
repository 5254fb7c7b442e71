"""Gateways before the replicas of jobs that serve, and the requests that were left with one to be answered later."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

__all__ = ["Gateway", "LaterRequest"]


class Gateway(models.Model):
    """`name`: in its address. `key_name`: the variable of the job that holds the servers' API key. Its callers' token is kept as SHA-256.

    `most_running`: at once of each replica; `queue_limit`: how many more are let in, all replicas together; `requests_per_second` NULL: no rate.
    `state`: a key of words.STATES, with `replicas_up`, as the process that runs the gateway saw it at `seen_at`.
    """

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="gateway")
    name = models.CharField(max_length=20, unique=True)
    enabled = models.BooleanField(default=True)
    most_running = models.PositiveIntegerField(default=16)
    queue_limit = models.PositiveIntegerField(default=16)
    requests_per_second = models.FloatField(null=True, blank=True)
    timeout_seconds = models.PositiveIntegerField(default=60)
    retry_after_seconds = models.PositiveIntegerField(default=2)
    key_name = models.CharField(max_length=100, blank=True)
    token_hash = models.CharField(max_length=64, blank=True)
    token_prefix = models.CharField(max_length=12, blank=True)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    state = models.CharField(max_length=20, blank=True)
    replicas_up = models.PositiveSmallIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"gateway of {self.job}"


class LaterRequest(models.Model):
    """Left by a caller, sent through the gateway's own limits when there is room, its answer kept until it is fetched or a day is over.

    `state`: queued, running, done (whatever was answered), failed (nobody answered; `status` says how), cancelled. `path`: below /v1/.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    gateway = models.ForeignKey(Gateway, on_delete=models.CASCADE, related_name="later")
    state = models.CharField(max_length=10, default="queued")
    path = models.CharField(max_length=200)
    body = models.BinaryField()
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, blank=True)
    answer = models.BinaryField(default=bytes)

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], name="later_due", condition=Q(state="queued")),
            models.Index(fields=["gateway", "state"], name="later_open"),
        ]

    def __str__(self) -> str:
        return str(self.id)
