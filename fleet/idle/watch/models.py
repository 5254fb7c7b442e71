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
    # The newest reading that showed use; kept when readings are dropped.
    active_at = models.DateTimeField(null=True)
    mode = models.CharField(max_length=12)
    window_minutes = models.PositiveIntegerField()
    policy = models.ForeignKey("fleet.IdlePolicy", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "idle_verdict"
        indexes = [models.Index(fields=["answer"], name="idle_verdict_answer")]


class GpuFloor(models.Model):
    """The lowest power that a GPU drew in the last week, which is what it draws at rest. From hourly rollups, once an hour."""

    gpu = models.OneToOneField("fleet.GPU", on_delete=models.CASCADE, primary_key=True, related_name="floor")
    watts = models.FloatField()
    reckoned_at = models.DateTimeField()

    class Meta:
        db_table = "gpu_floor"
