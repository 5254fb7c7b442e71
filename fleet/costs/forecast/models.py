"""What a team's days were, as forecasts learn from them, and what was forecast: a statement about past forecasts needs both."""

from __future__ import annotations

from django.db import models

__all__ = ["ForecastDay"]


class ForecastDay(models.Model):
    """One whole day of one scope ("team", "project:7", "owner:none" …, see scopes.py), and the forecast that was made when it had ended.

    Money is in `currency`. `rates`: what was charged an hour at the hours of RATE_HOURS, as decimals written out, null = not known.
    `by_age`: age of a machine in days -> what of `amount` went to machines of that age.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    scope = models.CharField(max_length=60)
    day = models.DateField()
    currency = models.CharField(max_length=3)
    amount = models.DecimalField(max_digits=28, decimal_places=14)
    rates = models.JSONField(default=list)
    by_age = models.JSONField(default=dict)
    # Of which month (its first day) the forecast was; NULL: none was made, the day is only known afterwards.
    month = models.DateField(null=True)
    will_end = models.DecimalField(max_digits=28, decimal_places=14, null=True)
    low = models.DecimalField(max_digits=28, decimal_places=14, null=True)
    high = models.DecimalField(max_digits=28, decimal_places=14, null=True)
    # Of the team alone: so many of `tested` forecasts that were reckoned afterwards ended within their band.
    tested_held = models.PositiveIntegerField(default=0)
    tested = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField()

    class Meta:
        db_table = "forecast_day"
        constraints = [models.UniqueConstraint("team", "scope", "day", name="forecast_day_once")]

    def __str__(self) -> str:
        return f"{self.scope} of {self.team_id} on {self.day}"
