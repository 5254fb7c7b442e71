"""Load tests of jobs that serve, and what each of their stages showed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import pgettext_lazy

__all__ = ["LoadStage", "LoadState", "LoadTest"]

OPEN_LOAD_STATES = ("queued", "running")


class LoadState(models.TextChoices):
    QUEUED = "queued", pgettext_lazy("load test", "queued")
    RUNNING = "running", pgettext_lazy("load test", "running")
    DONE = "done", pgettext_lazy("load test", "done")
    CANCELLED = "cancelled", pgettext_lazy("load test", "called off")
    FAILED = "failed", pgettext_lazy("load test", "failed")


class LoadTest(models.Model):
    """`plan`: loadtest.plan.LoadPlan; `key_name`: the variable of the job that holds the server's API key, "" = it asks for none.

    `progress`: {"stage", "level", "under_way", "answered", "failed", "begun"}, written while it runs, at `seen_at`. When it has ended: `knee_stage` (None: none)
    with `knee_past` (loadtest.knee.Knee), and `advice` as a list of loadtest.advice.Advice.
    """

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="load_tests")
    attempt = models.ForeignKey("jobs.Attempt", on_delete=models.CASCADE, related_name="load_tests")
    state = models.CharField(max_length=10, choices=LoadState, default=LoadState.QUEUED)
    why = models.CharField(max_length=40, blank=True, help_text="Code of words.WHYS.")
    detail = models.CharField(max_length=40, blank=True)
    plan = models.JSONField()
    key_name = models.CharField(max_length=100, blank=True)
    replicas = models.PositiveSmallIntegerField(default=1)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    asked_label = models.CharField(max_length=200, blank=True)
    cancel_asked_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    progress = models.JSONField(default=dict)
    knee_stage = models.PositiveSmallIntegerField(null=True)
    knee_past = models.CharField(max_length=12, blank=True)
    advice = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint("job", name="load_test_once", condition=Q(state__in=OPEN_LOAD_STATES)),
        ]
        indexes = [models.Index(fields=["job", "-asked_at"], name="load_test_at")]

    def __str__(self) -> str:
        return f"load test {self.pk} of {self.job}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_LOAD_STATES


class LoadStage(models.Model):
    """`figures`: loadtest.figures.StageFigures; `peaks`: loadtest.watch.Peaks, with "gpu_memory_share" of the machines' readings."""

    test = models.ForeignKey(LoadTest, on_delete=models.CASCADE, related_name="stages")
    number = models.PositiveSmallIntegerField()
    ended_at = models.DateTimeField()
    figures = models.JSONField()
    peaks = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint("test", "number", name="load_stage_once")]
        ordering = ["number"]

    def __str__(self) -> str:
        return f"stage {self.number} of {self.test}"
