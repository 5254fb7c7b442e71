"""How long a month takes to forecast for 5,000 machines with 100 days kept and a year of ended intervals: `python -m tests.bench.forecast`."""

from __future__ import annotations

import os
import statistics
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.bench.ingest import servers

if TYPE_CHECKING:
    from fleet.inventory.models import ProviderAccount
    from fleet.teams.models import Team

MACHINES, ACCOUNTS, PROJECTS, DAYS, ENDED, REPEATS = 5_000, 12, 20, 100, 20, 7
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def seed(team: Team, accounts: list[ProviderAccount]) -> None:
    """Each machine has run and stopped twenty times before; every tenth has a lease that ends this month, every fiftieth a planned stop."""
    from django.db import connection

    from fleet.costs.spend.models import CostProgress
    from fleet.inventory.models import Instance
    from fleet.inventory.plans.models import PlannedAction

    rows = Instance.objects.bulk_create(
        Instance(
            team=team, account=accounts[number % ACCOUNTS], external_id=f"i-{number}", name=f"m{number}", state="running", billing="full",
            price_per_hour=Decimal("2.5"), first_seen_at=NOW - timedelta(days=number % 90),
            expires_at=NOW + timedelta(hours=number % 300) if number % 10 == 0 else None,
        )
        for number in range(MACHINES)
    )  # fmt: skip
    PlannedAction.objects.bulk_create(
        PlannedAction(
            team=team,
            instance=row,
            verb="stop",
            due_at=NOW + timedelta(days=2),
            source="bench",
            reason="bench",
            notified_at=NOW,
        )
        for row in rows[::50]
    )
    CostProgress.objects.create(team=team, summed_until=NOW, time_zone="UTC")
    with connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement, {"team": team.pk, "now": NOW, "ended": ENDED, "days": DAYS, "projects": PROJECTS})
        cursor.execute("ANALYZE")


STATEMENTS = (
    """INSERT INTO ledger_meter (team_id, account_id, instance_id, kind, resource)
       SELECT %(team)s, account_id, id, kind, '' FROM fleet_instance, unnest(ARRAY['compute', 'disk_running']) AS kind""",
    """INSERT INTO ledger_interval (meter_id, period, unit, unit_price, quantity, currency, market, price_source, seen_at, start_source,
           start_half_width_seconds, end_half_width_seconds, run)
       SELECT m.id, tstzrange(%(now)s - (n + 1) * interval '3 days', CASE n WHEN 0 THEN NULL ELSE %(now)s - n * interval '3 days' - interval '1 hour' END),
           CASE kind WHEN 'compute' THEN 'hour' ELSE 'gb_month' END, 2.5, 1, 'USD', '', 'listing', %(now)s, 'provider', 0, 0, n
       FROM ledger_meter m, generate_series(0, %(ended)s) AS n""",
    """INSERT INTO cost_group (team_id, account_id, project_id, job, labels, labels_digest, gpu_model, market, tenancy, region, idle_share)
       SELECT %(team)s, a.id, p.id, '', '{}', '', '', '', '', '', false FROM fleet_provideraccount a, fleet_project p""",
    """INSERT INTO cost_day (team_id, day, instance_id, group_id, currency, meter, amount, working_amount, held_amount, free_amount, starved_amount,
           stalled_amount, unknown_amount, stopped_amount, working_gpu_seconds, held_gpu_seconds, free_gpu_seconds, starved_gpu_seconds,
           stalled_gpu_seconds, unknown_gpu_seconds, seconds, unpriced_seconds)
       SELECT %(team)s, d::date, i.id, g.id, 'USD', 'compute', 60, 60, 0, 0, 0, 0, 0, 0, 86400, 0, 0, 0, 0, 0, 86400, 0
       FROM generate_series(%(now)s - interval '16 days', %(now)s, interval '1 day') AS d, fleet_instance i
       JOIN LATERAL (SELECT id FROM cost_group WHERE account_id = i.account_id ORDER BY id OFFSET i.id %% %(projects)s LIMIT 1) g ON true""",
    """INSERT INTO cost_group_day (team_id, day, group_id, currency, meter, amount, working_amount, held_amount, free_amount, starved_amount,
           stalled_amount, unknown_amount, stopped_amount, working_gpu_seconds, held_gpu_seconds, free_gpu_seconds, starved_gpu_seconds,
           stalled_gpu_seconds, unknown_gpu_seconds, seconds, unpriced_seconds)
       SELECT team_id, day, group_id, currency, meter, sum(amount), sum(amount), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
       FROM cost_day GROUP BY team_id, day, group_id, currency, meter""",
    """INSERT INTO forecast_day (team_id, scope, day, currency, amount, rates, by_age, tested_held, tested, made_at)
       SELECT %(team)s, 'team', d::date, 'USD', 300000, '["12500", "12500", "12500", "12500"]',
           (SELECT jsonb_object_agg(age::text, '3000') FROM generate_series(0, 30) AS age), 0, 0, %(now)s
       FROM generate_series(%(now)s - %(days)s * interval '1 day', %(now)s - interval '1 day', interval '1 day') AS d""",
)


def measure() -> str:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from fleet.costs.anomalies.load import load_facts
    from fleet.costs.forecast.forecast import month_forecast
    from fleet.costs.spend.spend import Where
    from fleet.inventory.models import ProviderAccount
    from fleet.teams.models import Project, Team

    team = Team.objects.create(name="Acme", slug="acme")
    accounts = [ProviderAccount.objects.create(team=team, kind="aws", name=f"A{number}") for number in range(ACCOUNTS)]
    projects = [Project.objects.create(team=team, name=f"P{number}", slug=f"p{number}") for number in range(PROJECTS)]
    seed(team, accounts)
    asked = {
        "the team": lambda: month_forecast(team=team, now=NOW),
        "one project": lambda: month_forecast(team=team, now=NOW, where=Where(projects=(projects[0].pk,))),
        "what the rules about unusual money see": lambda: load_facts(team=team, now=NOW),
    }
    lines = []
    for name, ask in asked.items():
        clock, cpu = [], []
        for _ in range(REPEATS):
            began, busy = time.perf_counter(), time.process_time()
            with CaptureQueriesContext(connection) as queries:
                ask()
            clock.append(time.perf_counter() - began)
            cpu.append(time.process_time() - busy)
        said = [f"{1000 * statistics.median(times):.0f} ms" for times in (cpu, clock)]
        database = 1000 * sum(float(query["time"]) for query in queries)
        lines.append(f"{name}: {said[0]} CPU, {said[1]} clock, {database:.0f} ms in {len(queries)} queries")
    return "\n".join(lines)


def main() -> None:
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print(measure())  # noqa: T201


if __name__ == "__main__":
    main()
