"""What a fleet did, by groups of GPUs that are alike: made from the rollups of GPUs, and kept as long as they are."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

__all__ = ["FleetRollupFiveMinutes", "FleetRollupHour", "FleetRollupProgress", "RollupGroup"]

# A bin a whole percent, 0 to 100.
UTILIZATION_BINS = 101


class RollupGroup(models.Model):
    """GPUs of one team that charts never tell apart. A GPU's row in a rollup keeps the group in which it was first rolled up."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, db_index=False, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, db_index=False, related_name="+")
    # As its provider lists it, else as its driver calls it; "" = neither says.
    gpu_model = models.CharField(max_length=120)
    tenancy = models.CharField(max_length=16)

    class Meta:
        db_table = "rollup_group"
        constraints = [
            models.UniqueConstraint(
                fields=["team", "account", "project", "gpu_model", "tenancy"],
                name="rollup_group_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_model} of {self.account_id}"


class FleetRollup(models.Model):
    """One bucket [bucket_at, bucket_at + width) of one group.

    Seconds in each state are those of all its GPUs together. `utilization_gpus[n]`: how many GPUs had a mean of n percent; those
    whose utilization was not read are in none. `power_watts` adds up the means of the `power_gpus` that told theirs; NULL = none did.
    """

    group = models.ForeignKey(
        RollupGroup, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    bucket_at = models.DateTimeField()
    working_seconds = models.FloatField()
    held_seconds = models.FloatField()
    free_seconds = models.FloatField()
    starved_seconds = models.FloatField()
    stalled_seconds = models.FloatField()
    unknown_seconds = models.FloatField()
    stopped_seconds = models.FloatField()
    utilization_gpus = ArrayField(models.IntegerField(), size=UTILIZATION_BINS)
    power_watts = models.FloatField(null=True)
    power_gpus = models.IntegerField()

    class Meta:
        abstract = True


class FleetRollupFiveMinutes(FleetRollup):
    pk = models.CompositePrimaryKey("group_id", "bucket_at")

    class Meta:
        db_table = "fleet_rollup_5min"


class FleetRollupHour(FleetRollup):
    pk = models.CompositePrimaryKey("group_id", "bucket_at")

    class Meta:
        db_table = "fleet_rollup_1h"


class FleetRollupProgress(models.Model):
    """Every bucket before `rolled_until` is counted. Locked by whoever counts, so that late rows of GPUs are never missed."""

    resolution = models.CharField(max_length=8, primary_key=True)
    rolled_until = models.DateTimeField()

    class Meta:
        db_table = "fleet_rollup_progress"

    def __str__(self) -> str:
        return f"fleet, {self.resolution} until {self.rolled_until:%Y-%m-%d %H:%M}"
