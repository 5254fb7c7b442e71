"""What finished jobs took, beside what was predicted."""

from __future__ import annotations

from django.db import models

__all__ = ["JobOutcome"]


class JobOutcome(models.Model):
    """One finished attempt that ran long enough to tell. Bytes of one GPU, seconds of a step, money of the whole run. `like`: what makes jobs comparable
    ({"kind", "model", "method", "precision", "gpu", "engine"}), from the plan.
    """

    attempt = models.OneToOneField("jobs.Attempt", on_delete=models.CASCADE, related_name="outcome")
    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    like = models.JSONField(default=dict)
    predicted_memory_bytes = models.FloatField(null=True)
    measured_memory_bytes = models.FloatField(null=True)
    predicted_seconds_per_step = models.FloatField(null=True)
    measured_seconds_per_step = models.FloatField(null=True)
    predicted_tokens_per_second = models.FloatField(null=True)
    measured_tokens_per_second = models.FloatField(null=True)
    predicted_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    measured_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, default="USD")
    reckoned_at = models.DateTimeField()
