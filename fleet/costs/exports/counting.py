"""Money for Prometheus: counters that never go back, although days are summed again and credits are given.

A counter that falls means a restart to Prometheus, which then takes all of it for new. So what is given is the highest that the sums of all
days ever came to: where a correction takes something back, the counter stands still until there is as much again. Each meter of an account
and project stands by itself, so that a credit (meter "adjustment") holds up no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from django.db import connection

from fleet.costs.budgets.shown import budgets_of
from fleet.costs.exports.models import CostCounter
from fleet.teams.models import Team
from fleet.telemetry.giving.text import Family, Point, label_set

_COUNT = """
INSERT INTO cost_counter (team_id, account_id, project_id, meter, currency, amount, idle_amount)
SELECT day.team_id, own.account_id, own.project_id, day.meter, day.currency,
       greatest(sum(day.amount), 0), greatest(sum(day.held_amount + day.free_amount), 0)
FROM cost_group_day AS day JOIN cost_group AS own ON own.id = day.group_id
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (team_id, account_id, project_id, meter, currency) DO UPDATE
SET amount = greatest(cost_counter.amount, excluded.amount),
    idle_amount = greatest(cost_counter.idle_amount, excluded.idle_amount)
WHERE cost_counter.amount < excluded.amount OR cost_counter.idle_amount < excluded.idle_amount
"""


def count_costs() -> int:
    """Brings the counters up to the sums; how many moved."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT)
        moved: int = cursor.rowcount
        return moved


def cost_families(team_ids: Collection[int], _now: datetime) -> Iterator[Family]:
    rows = CostCounter.objects.filter(team__in=team_ids).select_related("account", "project").order_by("pk")
    found = [(labels_of(row), row) for row in rows]
    description = "What was charged, as the ledger has it, by account, project and meter; only ever grows."
    yield Family("rackrent_cost_total", "counter", description, _with(found, "amount"))
    description = "Of it, for GPUs that were held idle or free."
    yield Family("rackrent_idle_cost_total", "counter", description, _with(found, "idle_amount"))


def budget_families(team_ids: Collection[int], now: datetime) -> Iterator[Family]:
    teams = Team.objects.filter(pk__in=team_ids, budgets__removed_at=None).distinct().order_by("pk")
    lines = [point for team in teams for point in remaining_of(team, now)]
    description = "What of a budget is left in its present period; below 0 where it is spent."
    yield Family("rackrent_budget_remaining", "gauge", description, lines)


def remaining_of(team: Team, now: datetime) -> list[Point]:
    found = [line for line in budgets_of(team, now) if not line.is_over]
    return [
        (
            label_set({"budget": line.name, "budget_id": str(line.budget.pk), "currency": line.currency}),
            round(line.amount - line.spent, 6),
        )
        for line in found
    ]


def labels_of(row: CostCounter) -> str:
    """Accounts of two teams may have one name: `account_id` tells them apart."""
    return label_set(
        {
            "account": row.account.name,
            "account_id": str(row.account_id),
            "provider": row.account.kind,
            "project": row.project.slug if row.project else "",
            "meter": row.meter,
            "currency": row.currency,
        }
    )


def _with(found: Iterable[tuple[str, CostCounter]], name: str) -> Iterator[Point]:
    for labels, row in found:
        yield labels, round(getattr(row, name), 6)
