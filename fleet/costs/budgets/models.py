"""Budgets and the thresholds of them that were reached."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["Basis", "Budget", "BudgetPeriod", "Crossing"]


class BudgetPeriod(models.TextChoices):
    MONTH = "month", _("calendar month")
    CUSTOM = "custom", _("from a day until another")


class Basis(models.TextChoices):
    """What a threshold is held against: what was spent, or what will have been by the end of the period."""

    ACTUAL = "actual", _("spent")
    FORECAST = "forecast", _("forecast")


class Budget(models.Model):
    """Of a project, a person, an account, or (none of them named) the whole team. Days are those of the team's time zone.

    Thresholds are percent of `amount`. A hard one blocks launches from 100 % spent on, and with `stops` plans stops of its machines.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="budgets")
    name = models.CharField(max_length=80)
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.CASCADE, null=True, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="+")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    period = models.CharField(max_length=8, choices=BudgetPeriod, default=BudgetPeriod.MONTH)
    # Of a custom period, [starts_on, ends_on).
    starts_on = models.DateField(null=True)
    ends_on = models.DateField(null=True)
    actual_thresholds = models.JSONField(default=list)
    forecast_thresholds = models.JSONField(default=list)
    hard = models.BooleanField(default=False)
    stops = models.BooleanField(default=False)
    notice_hours = models.PositiveSmallIntegerField(default=24)
    # Grows with each change: what was reached before it does not count for what it is now.
    revision = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)
    # Where it was heading when it was last judged (measuring.Outlook), so that pages need not reckon it anew.
    judged_at = models.DateTimeField(null=True)
    outlook = models.JSONField(default=dict)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "budget"
        constraints = [
            models.UniqueConstraint("team", "name", name="budget_name_once", condition=Q(removed_at__isnull=True)),
            models.CheckConstraint(condition=Q(amount__gt=0), name="budget_amount_positive"),
            models.CheckConstraint(
                condition=Q(period="month", starts_on__isnull=True, ends_on__isnull=True)
                | Q(period="custom", starts_on__lt=models.F("ends_on")),
                name="budget_period_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def source(self) -> str:
        """By which its blocks and planned stops are known."""
        return f"budget:{self.pk}"


class Crossing(models.Model):
    """A threshold that was reached in one period, with the figures of that moment. At most one of each, whoever judges.

    `fell_back_at`: what had been spent fell well below it again, after a refund for example.
    """

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="crossings")
    period_from = models.DateField()
    revision = models.PositiveIntegerField()
    basis = models.CharField(max_length=8, choices=Basis)
    percent = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    amount = models.DecimalField(max_digits=14, decimal_places=2, help_text="Of the budget, then.")
    currency = models.CharField(max_length=3)
    spent = models.DecimalField(max_digits=28, decimal_places=14)
    will_end = models.DecimalField(max_digits=28, decimal_places=14, null=True)
    fell_back_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "budget_crossing"
        constraints = [
            models.UniqueConstraint(
                "budget", "period_from", "revision", "basis", "percent", name="budget_crossing_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.percent}% of {self.budget}"
