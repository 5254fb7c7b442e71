"""The environment of an image, as people typed it and as a saved image carried it along, with its runbook."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["Environment"]


class Environment(models.Model):
    """Of an image, or of none: then it is a template that the team keeps, with the container image that it starts from in `reference`.

    What agents reported of machines that ran the image is not kept here: it is read from their reports each time.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="runbooks")
    image = models.OneToOneField("fleet.Image", on_delete=models.SET_NULL, null=True, related_name="environment")
    name = models.CharField(_("name"), max_length=300)
    reference = models.CharField(max_length=300, blank=True)
    # {"driver", "cuda", "cudnn", "nccl", "python", "frameworks": {name: version}}; absent = nobody said.
    typed = models.JSONField(default=dict, blank=True)
    typed_at = models.DateTimeField(null=True)
    typed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    # The same of the machine that the image was saved from, as it was then; "container" beside it, as agents report it.
    carried = models.JSONField(default=dict, blank=True)
    carried_at = models.DateTimeField(null=True)
    carried_from = models.CharField(max_length=200, blank=True)
    price_per_month = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, help_text="What keeping the image costs; NULL = not known."
    )
    currency = models.CharField(max_length=3, default="USD")
    commands = models.TextField(blank=True, help_text="How work is started on it.")
    pitfalls = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    edited_at = models.DateTimeField(null=True)
    edited_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team", "name", name="environment_template_once", condition=models.Q(image__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name
