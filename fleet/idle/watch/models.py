"""The verdict of every machine as it was judged last, and what its GPUs draw at rest."""

from __future__ import annotations

from django.db import models

__all__ = ["GpuFloor", "IdleVerdictRow"]


class IdleVerdictRow(models.Model):
    """One row a machine, written anew each minute. `answer`: fleet.idle.verdict.verdict.Answer; `since`: of this answer.

    `because`: its reasons as [{"code", "subject", "value", "limit"}], times as ISO. `parts`: of shared machines, answers by owner. `policy`: the
    one that covers it; NULL = none, judged by the defaults. `window_minutes`, `mode`: with which it was judged.
    """

    instance = models.OneToOneField(
        "fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="idle_verdict"
    )
    answer = models.CharField(max_length=8)
    because = models.JSONField(default=list)
    parts = models.JSONField(default=dict)
    quiet_since = models.DateTimeField(null=True)
    since = models.DateTimeField()
    judged_at = models.DateTimeField()
    # The newest reading that showed use, or somebody who came; kept when readings are dropped.
    active_at = models.DateTimeField(null=True)
    # SSH sessions as they were counted last: one more is somebody who came.
    ssh_sessions = models.IntegerField(null=True)
    mode = models.CharField(max_length=12)
    window_minutes = models.PositiveIntegerField()
    policy = models.ForeignKey("fleet.IdlePolicy", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "idle_verdict"
        indexes = [models.Index(fields=["answer"], name="idle_verdict_answer")]


class GpuFloor(models.Model):
    """The lowest power that a GPU drew in the last week, which is what it draws at rest. From hourly rollups, once an hour.

    `held_watts`: of the hours in which its memory was in use all the time. A program that waits with memory on a GPU keeps its clocks up, so that
    it draws more than an empty one and does nothing all the same. NULL: there was no such hour, or it drew too much to be rest.
    """

    gpu = models.OneToOneField("fleet.GPU", on_delete=models.CASCADE, primary_key=True, related_name="floor")
    watts = models.FloatField()
    held_watts = models.FloatField(null=True)
    reckoned_at = models.DateTimeField()

    class Meta:
        db_table = "gpu_floor"
