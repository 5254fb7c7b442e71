"""What the last look at each machine found: a smaller one that would do, or why it was left alone."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

__all__ = ["RightSizing"]


class RightSizing(models.Model):
    """One row a machine, overwritten by every look; what a person said of it stays.

    With `kind` it is a suggestion: `saving_per_month` of `currency` by the change in `change` (record.py says what the JSON holds).
    With `why` the machine was left alone. Exactly one of the two is filled.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, db_index=False, related_name="+")
    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, related_name="right_sizing")
    looked_at = models.DateTimeField()
    kind = models.CharField(max_length=12, blank=True)
    why = models.CharField(max_length=20, blank=True)
    told = models.JSONField(default=dict)
    measured = models.JSONField(default=dict)
    change = models.JSONField(default=dict)
    others = models.JSONField(default=list)
    offer = models.ForeignKey("fleet.Offer", on_delete=models.SET_NULL, null=True, related_name="+")
    saving_per_month = models.DecimalField(max_digits=16, decimal_places=2, null=True)
    currency = models.CharField(max_length=3)
    dismissed_at = models.DateTimeField(null=True)
    dismissed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    dismissed_reason = models.CharField(_("reason"), max_length=300, blank=True)
    # In `currency` of then; from half as much again on, the suggestion comes back.
    dismissed_saving = models.DecimalField(max_digits=16, decimal_places=2, null=True)

    class Meta:
        db_table = "right_sizing"
        indexes = [models.Index(fields=["team", "-saving_per_month"], name="right_sizing_team_saving")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind="", saving_per_month__isnull=True) & ~models.Q(why="")
                | models.Q(why="", saving_per_month__gt=0) & ~models.Q(kind=""),
                name="right_sizing_change_or_why",
            )
        ]

    def __str__(self) -> str:
        return f"{self.instance}: {self.kind or self.why}"
