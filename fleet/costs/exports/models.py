"""What Prometheus was told of money: a counter must not go back, and sums of days that are reckoned again may."""

from __future__ import annotations

from django.db import models

__all__ = ["CostCounter"]


class CostCounter(models.Model):
    """The highest that all days together have ever come to, of one account, project, meter and currency."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, db_index=False, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, db_index=False, related_name="+")
    meter = models.CharField(max_length=16)
    currency = models.CharField(max_length=3)
    amount = models.DecimalField(max_digits=28, decimal_places=14)
    # Of it, held idle and free.
    idle_amount = models.DecimalField(max_digits=28, decimal_places=14)

    class Meta:
        db_table = "cost_counter"
        constraints = [
            models.UniqueConstraint(
                fields=["team", "account", "project", "meter", "currency"],
                name="cost_counter_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.meter} of {self.account_id} in {self.currency}"
