"""What the diagnosis found of a job."""

from __future__ import annotations

from django.db import models

__all__ = ["JobFinding"]


class JobFinding(models.Model):
    """jobs.diagnosis.finding.Finding as rows; one stands per attempt and code. `found_at`: since when it stands; `gone_at`: when it was not found any more."""

    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, related_name="findings")
    code = models.CharField(max_length=40)
    sure = models.CharField(max_length=10)
    because = models.JSONField(default=list)
    remedies = models.JSONField(default=list)
    lines = models.JSONField(default=list)
    gpus = models.JSONField(default=list)
    since = models.DateTimeField(null=True)
    found_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("attempt", "code", name="job_finding_once")]
