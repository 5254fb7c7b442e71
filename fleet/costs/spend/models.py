"""Money by day, made from the ledger: the only rows that totals on pages, in the API and in exports are read from, and exchange rates.

Nobody is deleted whom money belongs to, and no machine or account that cost some: but with the whole team.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from fleet.costs.words import METERS
from fleet.inventory.words import choices

__all__ = ["Adjustment", "CostDay", "CostGroup", "CostGroupDay", "CostMonth", "CostProgress", "ExchangeRate"]


class CostGroup(models.Model):
    """What charges of one team have in common: everything that money is ever grouped or filtered by, the machine and the meter aside.

    `idle_share`: what of a shared machine nobody used. Whom charges belong to is as it was when they were made.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.RESTRICT, db_index=False, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.RESTRICT, null=True, db_index=False, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.RESTRICT, null=True, db_index=False, related_name="+")
    job = models.CharField(max_length=200, blank=True)
    labels = models.JSONField(default=dict)
    # MD5 of the labels as PostgreSQL writes them out: an index entry has no room for the labels themselves.
    labels_digest = models.CharField(max_length=32)
    gpu_model = models.CharField(max_length=60, blank=True)
    market = models.CharField(max_length=16, blank=True)
    tenancy = models.CharField(max_length=16, blank=True)
    region = models.CharField(max_length=80, blank=True)
    idle_share = models.BooleanField(default=False)

    class Meta:
        db_table = "cost_group"
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "team",
                    "account",
                    "project",
                    "owner",
                    "job",
                    "labels_digest",
                    "gpu_model",
                    "market",
                    "tenancy",
                    "region",
                    "idle_share",
                ],
                name="cost_group_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"group {self.pk} of {self.account_id}"


class Sums(models.Model):
    """Of one meter in one currency. Amounts are exact and add up: `amount` is the sum of the seven states' (states.py).

    `stopped_amount` is what machines cost while off, `unknown_amount` what was paid while nobody could tell. GPU-seconds are those of
    the meter "compute" alone. `unpriced_seconds`: time that was charged at a price nobody told, which no amount has.
    """

    currency = models.CharField(max_length=3)
    meter = models.CharField(max_length=16, choices=choices(METERS))
    amount = models.DecimalField(max_digits=28, decimal_places=14)
    working_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    held_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    free_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    starved_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    stalled_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    unknown_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    stopped_amount = models.DecimalField(max_digits=28, decimal_places=14, default=0)
    working_gpu_seconds = models.FloatField(default=0)
    held_gpu_seconds = models.FloatField(default=0)
    free_gpu_seconds = models.FloatField(default=0)
    starved_gpu_seconds = models.FloatField(default=0)
    stalled_gpu_seconds = models.FloatField(default=0)
    unknown_gpu_seconds = models.FloatField(default=0)
    seconds = models.FloatField(default=0)
    unpriced_seconds = models.FloatField(default=0)

    class Meta:
        abstract = True


class CostDay(Sums):
    """One machine (or what an account is charged for without one) on one day of the team's time zone, as far as the day has gone."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, db_index=False, related_name="+")
    day = models.DateField()
    instance = models.ForeignKey("fleet.Instance", on_delete=models.RESTRICT, null=True, related_name="+")
    group = models.ForeignKey(CostGroup, on_delete=models.CASCADE, db_index=False, related_name="+")

    class Meta:
        db_table = "cost_day"
        constraints = [
            models.UniqueConstraint(
                fields=["team", "day", "instance", "group", "meter", "currency"],
                name="cost_day_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.meter} of {self.instance_id} on {self.day}"


class CostGroupDay(Sums):
    """The sum of CostDay over the machines of a group: what pages read that do not name machines."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, db_index=False, related_name="+")
    day = models.DateField()
    group = models.ForeignKey(CostGroup, on_delete=models.CASCADE, db_index=False, related_name="+")

    class Meta:
        db_table = "cost_group_day"
        constraints = [
            models.UniqueConstraint(fields=["team", "day", "group", "meter", "currency"], name="cost_group_day_once")
        ]

    def __str__(self) -> str:
        return f"{self.meter} of group {self.group_id} on {self.day}"


class CostMonth(Sums):
    """The sum of CostDay over a month (`month`: its first day), for lists of machines."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, db_index=False, related_name="+")
    month = models.DateField()
    instance = models.ForeignKey("fleet.Instance", on_delete=models.RESTRICT, null=True, related_name="+")
    group = models.ForeignKey(CostGroup, on_delete=models.CASCADE, db_index=False, related_name="+")

    class Meta:
        db_table = "cost_month"
        constraints = [
            models.UniqueConstraint(
                fields=["team", "month", "instance", "group", "meter", "currency"],
                name="cost_month_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.meter} of {self.instance_id} in {self.month:%Y-%m}"


class CostProgress(models.Model):
    """Up to when a team's days are summed, and in which time zone: another one means that all are summed again.

    `rolled_until`: up to where hours of GPUs were rolled up when they were last asked for; NULL: none were.
    """

    team = models.OneToOneField("fleet.Team", on_delete=models.CASCADE, primary_key=True, related_name="+")
    summed_until = models.DateTimeField()
    rolled_until = models.DateTimeField(null=True)
    time_zone = models.CharField(max_length=64)

    class Meta:
        db_table = "cost_progress"

    def __str__(self) -> str:
        return f"{self.team_id} until {self.summed_until}"


class ExchangeRate(models.Model):
    """One unit of `currency` in `into`, from `day` on until a newer rate. Typed, or read from a file."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="exchange_rates")
    currency = models.CharField(max_length=3)
    into = models.CharField(max_length=3)
    day = models.DateField()
    rate = models.DecimalField(max_digits=20, decimal_places=10)
    source = models.CharField(max_length=120, blank=True)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "exchange_rate"
        constraints = [
            models.UniqueConstraint("team", "currency", "into", "day", name="exchange_rate_once"),
            models.CheckConstraint(condition=models.Q(rate__gt=0), name="exchange_rate_positive"),
        ]

    def __str__(self) -> str:
        return f"1 {self.currency} = {self.digits} {self.into}, {self.day}"

    @property
    def digits(self) -> str:
        """Without the zeros that the column fills up with."""
        return f"{self.rate.normalize():f}"


class Adjustment(models.Model):
    """A correction of what was reckoned, with its reason: the only way in which a bill changes a total. Never changed, only reversed."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.RESTRICT, related_name="+")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.RESTRICT, null=True, related_name="+")
    at = models.DateTimeField(help_text="In whose day it counts.")
    # Negative: a credit or a refund.
    amount = models.DecimalField(max_digits=20, decimal_places=10)
    currency = models.CharField(max_length=3)
    # "usage", "credit", "refund", "tax", "purchase", "correction"
    kind = models.CharField(max_length=12)
    reason = models.CharField(max_length=300)
    reverses = models.OneToOneField("self", on_delete=models.CASCADE, null=True, related_name="reversed_by")
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "cost_adjustment"
        indexes = [models.Index(fields=["team", "at"], name="cost_adjustment_team_at")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}: {self.reason}"
