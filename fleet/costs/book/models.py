"""The ledger as rows: what is charged for (a meter), and the intervals in which one price of it held."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Func, Q, Value

from fleet.costs.words import EDGE_SOURCES, METERS, PRICE_SOURCES
from fleet.inventory.words import choices

__all__ = ["LedgerBuild", "LedgerChange", "LedgerInterval", "LedgerMeter", "LedgerProgress"]


class LedgerMeter(models.Model):
    """One thing that is charged for: a kind of charge of one machine, and of which of its resources. Without a machine: of the account."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.RESTRICT, related_name="+")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.RESTRICT, null=True, related_name="meters")
    kind = models.CharField(max_length=16, choices=choices(METERS))
    # "" = the machine itself; else the volume, the address, the run whose minimum it is, or the charge that somebody typed.
    resource = models.CharField(max_length=200, blank=True)

    class Meta:
        db_table = "ledger_meter"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "instance", "kind", "resource"], name="ledger_meter_once", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.instance_id or self.account_id}"


class LedgerInterval(models.Model):
    """[lower, upper) of `period` in UTC; no upper bound: it goes on. Charged is unit_price x quantity for each `unit` of time, or once.

    unit_price NULL: charged, at a price that nobody told. The half-widths are how far start and end may be off, either way.
    """

    meter = models.ForeignKey(LedgerMeter, on_delete=models.CASCADE, related_name="intervals")
    period = DateTimeRangeField()
    # "hour", "month" and "gb_month" (of the seconds that the month of UTC has), "once" (all of it over the interval), "" (no charge).
    unit = models.CharField(max_length=10, blank=True)
    unit_price = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    quantity = models.DecimalField(max_digits=20, decimal_places=6, default=1)
    currency = models.CharField(max_length=3)
    market = models.CharField(max_length=16, blank=True)
    price_source = models.CharField(max_length=12, choices=choices(PRICE_SOURCES))
    seen_at = models.DateTimeField(help_text="When the price was read or typed.")
    start_source = models.CharField(max_length=12, choices=choices(EDGE_SOURCES))
    start_half_width_seconds = models.PositiveIntegerField(default=0)
    end_half_width_seconds = models.PositiveIntegerField(default=0)
    # Grows with each start of the machine: minimums are charged once a start.
    run = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "ledger_interval"
        constraints = [
            # An open interval reaches to the end of time, so that two open ones of a meter overlap too.
            ExclusionConstraint(
                name="ledger_interval_no_overlap",
                expressions=[
                    (Func("meter_id", "meter_id", Value("[]"), function="int8range"), RangeOperators.OVERLAPS),
                    ("period", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(
                condition=Q(period__isempty=False, period__startswith__isnull=False), name="ledger_interval_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(unit_price__isnull=True) | Q(unit_price__gte=0), name="ledger_interval_price"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.meter} {self.period}"


class LedgerProgress(models.Model):
    """How far a machine's observations are in the ledger: all rows up to `observation_id`, and time up to `until`.

    `first_observation_id`: the row that the ledger began with. Where it is not there any more, what was made from it cannot be made again.
    """

    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="+")
    first_observation_id = models.BigIntegerField(default=0)
    observation_id = models.BigIntegerField(default=0)
    until = models.DateTimeField(null=True)

    class Meta:
        db_table = "ledger_progress"

    def __str__(self) -> str:
        return f"{self.instance_id} until {self.until}"


class LedgerBuild(models.Model):
    """One row: everything seen before `complete_until` is in the ledger, but for what was written later than LATENESS (build.py)."""

    complete_until = models.DateTimeField()

    class Meta:
        db_table = "ledger_build"

    def __str__(self) -> str:
        return f"until {self.complete_until}"


class LedgerChange(models.Model):
    """What the daily sums of `fleet.costs.spend` do not have yet: everything of this machine (or account) from `from_at` on.

    Append-only for whoever writes intervals, attribution or adjustments; repeats mean nothing. Taken out by the summing.
    """

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="+")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    from_at = models.DateTimeField()

    class Meta:
        db_table = "ledger_change"

    def __str__(self) -> str:
        return f"{self.instance_id or self.account_id} from {self.from_at}"
