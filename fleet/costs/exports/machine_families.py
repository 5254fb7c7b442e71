"""What each machine cost this month, for Prometheus: the figures of the page of costs, by machine and currency."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, Sum

from fleet.costs.month import Month
from fleet.costs.spend.models import CostMonth
from fleet.inventory.models import Instance
from fleet.teams.models import Team
from fleet.telemetry.giving.labels import machine_labels
from fleet.telemetry.giving.text import Family, Point, label_set, with_label

COST = "What the machine cost since the month began (in the team's time zone)."
UNPRICED = "Time of the same month that was charged at a price nobody told."


def machine_families(team_ids: Collection[int], now: datetime) -> Iterator[Family]:
    """Three queries. A machine that is gone stays until the month ends."""
    rows = month_sums(team_ids, now)
    machines = Instance.objects.filter(pk__in={row["instance_id"] for row in rows})
    labels = {row.pk: label_set(machine_labels(row)) for row in machines.select_related("account", "project")}
    named = [(with_label(labels[row["instance_id"]], "currency", row["currency"]), row) for row in rows]
    yield Family("rackrent_instance_cost_total", "counter", COST, costs_of(named))
    yield Family(
        "rackrent_instance_unpriced_seconds_total",
        "counter",
        UNPRICED,
        [(point, row["unpriced"]) for point, row in named],
    )


def costs_of(named: list[tuple[str, dict[str, Any]]]) -> list[Point]:
    """Without what only ever had no price: that is not known, and no zero."""
    return [(point, round(row["cost"], 6)) for point, row in named if row["cost"] or row["unpriced"] < row["seconds"]]


def month_sums(team_ids: Collection[int], now: datetime) -> list[dict[str, Any]]:
    months = Q(pk__in=())
    for team in Team.objects.filter(pk__in=team_ids).order_by("pk"):
        months |= Q(team=team, month=Month.of(team, now=now).first)
    rows = CostMonth.objects.filter(months, instance__isnull=False).order_by("instance_id", "currency")
    sums = rows.values("instance_id", "currency").annotate(
        cost=Sum("amount", default=Decimal(0)), unpriced=Sum("unpriced_seconds"), seconds=Sum("seconds")
    )
    return [dict(row) for row in sums]
