"""How far jobs are, as points in time."""

from __future__ import annotations

from django.db import models

__all__ = ["JobPoint"]


class JobPoint(models.Model):
    """What one line of a log, or one call of a job, said at a time: jobs.progress.point.Point. NULL = it did not say.

    `source`: log or call. Points of a log carry its line's number; thinned where there are more than a chart can show.
    """

    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, related_name="points")
    at = models.DateTimeField()
    source = models.CharField(max_length=4)
    line = models.BigIntegerField(null=True)
    step = models.BigIntegerField(null=True)
    steps = models.BigIntegerField(null=True)
    epoch = models.FloatField(null=True)
    loss = models.FloatField(null=True, help_text="NaN is kept as it is.")
    eval_loss = models.FloatField(null=True)
    learning_rate = models.FloatField(null=True)
    grad_norm = models.FloatField(null=True)
    seconds_per_step = models.FloatField(null=True)
    samples_per_second = models.FloatField(null=True)
    tokens_per_second = models.FloatField(null=True)
    tokens_per_gpu = models.FloatField(null=True)
    tflops_per_gpu = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    skipped_steps = models.BigIntegerField(null=True)
    # Values that a call named and we have no column for: {"accuracy": 0.81}.
    others = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["attempt", "at"], name="job_point_at")]
