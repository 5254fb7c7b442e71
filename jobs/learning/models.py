"""What finished runs came to beside what was planned of them."""

from __future__ import annotations

from django.db import models

from jobs.learning.measures import Compared, Measure, Missing

__all__ = ["Outcome", "OutcomeFigure"]


class Outcome(models.Model):
    """One of each attempt that has ended. The columns up to `gpus` say which runs are alike; "" and NULL = its plan does not say, or there was none."""

    attempt = models.OneToOneField("jobs.Attempt", on_delete=models.CASCADE, related_name="outcome")
    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    work = models.CharField(max_length=12, blank=True)
    method = models.CharField(max_length=40, blank=True)
    model = models.CharField(max_length=200, blank=True)
    family = models.CharField(max_length=80, blank=True)
    gpu = models.CharField(max_length=60, blank=True)
    launcher = models.CharField(max_length=40, blank=True)
    gpus = models.PositiveIntegerField(null=True)
    ended_at = models.DateTimeField()
    measured_at = models.DateTimeField()
    # Of its money.
    currency = models.CharField(max_length=3, blank=True)

    class Meta:
        indexes = [models.Index(fields=["team", "work", "method", "gpu", "-ended_at"], name="job_outcome_alike")]

    def __str__(self) -> str:
        return f"outcome of {self.attempt_id}"


class OutcomeFigure(models.Model):
    """measures.Compared as a row: `missing` "" = the two can be compared."""

    outcome = models.ForeignKey(Outcome, on_delete=models.CASCADE, related_name="figures")
    measure = models.CharField(max_length=20)
    predicted = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    measured = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    missing = models.CharField(max_length=16, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("outcome", "measure", name="job_outcome_measure_once")]

    def __str__(self) -> str:
        return f"{self.measure}: {self.measured} of {self.predicted}"

    def compared(self, currency: str) -> Compared:
        measure = Measure(self.measure)
        return Compared(measure, self.predicted, self.measured, Missing(self.missing), currency)
