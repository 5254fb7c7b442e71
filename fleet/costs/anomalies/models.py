"""What a team changed of the rules that look for unusual money."""

from __future__ import annotations

from django.db import models

__all__ = ["AnomalyRule"]


class AnomalyRule(models.Model):
    """A team's own values of one rule (see rules/). No row: the rule's own."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="anomaly_rules")
    kind = models.CharField(max_length=40)
    enabled = models.BooleanField(default=True)
    # Name -> number; a threshold that is not in it is the rule's own.
    thresholds = models.JSONField(default=dict)
    changed_at = models.DateTimeField(null=True)
    changed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "anomaly_rule"
        constraints = [models.UniqueConstraint("team", "kind", name="anomaly_rule_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.team_id}"
