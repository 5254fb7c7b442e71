"""How long totals of money take for 5,000 machines over 13 months, and a day's summing of 40,000 GPUs: `python -m tests.bench.costs`."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

MONTHS, GPUS, REPEATS = 13, 8, 5
NOW = datetime(2026, 11, 30, 18, tzinfo=UTC)
TODAY, FIRST = NOW.date(), date(2025, 11, 1)

# 200 people in 20 projects, each with machines of six kinds.
_MACHINES = """
INSERT INTO fleet_user (id, password, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined, time_zone, language, hides_sandbox)
SELECT 1000 + n, '', false, 'person-' || n, '', '', '', false, true, now(), '', '', false FROM generate_series(0, 199) n;
INSERT INTO fleet_project (id, team_id, name, slug, created_at) SELECT 1000 + n, %(team)s, 'Project ' || n, 'project-' || n, now() FROM generate_series(0, 19) n;
INSERT INTO cost_group (id, team_id, account_id, project_id, owner_id, job, labels, labels_digest, gpu_model, market, tenancy, region, idle_share)
SELECT 1 + owner * 6 + kind, %(team)s, (%(accounts)s::bigint[])[1 + owner %% 4], 1000 + owner %% 20, 1000 + owner, '', '{}', md5('{}'),
    (ARRAY['H100', 'A100', 'L40S'])[1 + kind %% 3], (ARRAY['spot', 'on_demand'])[1 + kind / 3], 'exclusive', 'eu', false
FROM generate_series(0, 199) owner, generate_series(0, 5) kind;
SELECT setval(pg_get_serial_sequence('cost_group', 'id'), 5000);
"""
_GROUP_OF = "1 + (n %% 200) * 6 + (n / 200) %% 6"
_STATES = "amount * 0.5, amount * 0.1, amount * 0.1, 0, amount * 0.05, amount * 0.2, amount * 0.05"
_COLUMNS = (
    "amount, working_amount, held_amount, free_amount, starved_amount, stalled_amount, unknown_amount, stopped_amount, working_gpu_seconds, "
    "held_gpu_seconds, free_gpu_seconds, starved_gpu_seconds, stalled_gpu_seconds, unknown_gpu_seconds, seconds, unpriced_seconds"
)
_DAYS = f"""
INSERT INTO cost_day (team_id, day, instance_id, group_id, meter, currency, {_COLUMNS})
SELECT %(team)s, day::date, n, {_GROUP_OF}, meter, 'USD', amount, {_STATES}, 345600, 69120, 69120, 0, 34560, 138240, 86400, 0
FROM generate_series(%(first)s::date, %(past_last)s::date - 1, '1 day') day, generate_series(%(low)s, %(high)s) n,
    (VALUES ('compute', 48.12345678901234), ('disk_running', 0.98765432101234)) one (meter, amount) ORDER BY day
"""
_GROUP_DAYS = f"""
INSERT INTO cost_group_day (team_id, day, group_id, meter, currency, {_COLUMNS})
SELECT team_id, day, group_id, meter, currency, {{sums}} FROM cost_day GROUP BY 1, 2, 3, 4, 5 ORDER BY day
"""
_MONTH_ROWS = f"""
INSERT INTO cost_month (team_id, month, instance_id, group_id, meter, currency, {_COLUMNS})
SELECT team_id, date_trunc('month', day)::date, instance_id, group_id, meter, currency, {{sums}} FROM cost_day GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 2
"""
# A price for each month, as prices change.
_LEDGER = """
INSERT INTO ledger_meter (id, team_id, account_id, instance_id, kind, resource)
SELECT n * 2 + place, %(team)s, machine.account_id, n, (ARRAY['compute', 'disk_running'])[1 + place], ''
FROM generate_series(%(low)s, %(high)s) n JOIN fleet_instance machine ON machine.id = n, generate_series(0, 1) place;
INSERT INTO ledger_interval (meter_id, period, unit, unit_price, quantity, currency, market, price_source, seen_at, start_source, start_half_width_seconds, end_half_width_seconds, run)
SELECT meter.id, tstzrange(month, CASE WHEN month < '2026-11-01' THEN month + '1 month'::interval END), (ARRAY['hour', 'gb_month'])[1 + meter.id %% 2],
    1 + extract(month FROM month) / 100, 1 + 499 * (meter.id %% 2), 'USD', 'spot', 'listing', month, 'midpoint', 30, 30, 1
FROM ledger_meter meter, generate_series('2025-11-01'::timestamptz, '2026-11-01', '1 month') month;
INSERT INTO attribution_span (instance_id, period, project_id, owner_id, job, labels, split, source, note, created_at)
SELECT n, tstzrange('2025-11-01', NULL), 1000 + n %% 20, 1000 + n %% 200, '', '{}', 'whole', 'manual', '', now() FROM generate_series(%(low)s, %(high)s) n;
INSERT INTO fleet_gpu (id, instance_id, uuid, index, name, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT n * %(gpus)s + place, n, 'GPU-' || n || '-' || place, place, 'H100', '', '', '', '2025-11-01'
FROM generate_series(%(low)s, %(high)s) n, generate_series(0, %(gpus)s - 1) place;
INSERT INTO gpu_rollup_1h (gpu_id, bucket_at, samples, coverage, working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds, unknown_seconds, stopped_seconds)
SELECT gpu.id, hour, 360, 1, 1800, 700, 300, 100, 100, 500, 100 FROM fleet_gpu gpu, generate_series('2026-11-29 00:00Z'::timestamptz, '2026-11-29 23:00Z', '1 hour') hour;
"""
_REFERENCES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND conrelid::regclass::text IN ('cost_day', 'cost_group_day', 'cost_month', 'ledger_interval', 'fleet_gpu')
"""
# What a page would have to do without days of money, and that without saying in which state the GPUs were.
_STRAIGHT = """
SELECT span.project_id, sum(one.unit_price * one.quantity * extract(epoch FROM
    least(coalesce(upper(one.period), %(until)s), coalesce(upper(span.period), %(until)s), %(until)s) - greatest(lower(one.period), lower(span.period), %(since)s))
    / CASE one.unit WHEN 'hour' THEN 3600 ELSE 2592000 END)
FROM ledger_interval one JOIN ledger_meter meter ON meter.id = one.meter_id
JOIN attribution_span span ON span.instance_id = meter.instance_id AND span.period && one.period
WHERE meter.team_id = %(team)s AND one.period && tstzrange(%(since)s, %(until)s) AND span.period && tstzrange(%(since)s, %(until)s) GROUP BY 1
"""


def fill(machines: int) -> dict[str, Any]:
    from django.db import connection

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team

    team = Team.objects.create(name="Acme", slug="acme")
    accounts = [ProviderAccount.objects.create(team=team, kind="aws", name=f"A{number}") for number in range(4)]
    made = Instance.objects.bulk_create(
        Instance(
            team=team,
            account=accounts[number % 4],
            external_id=f"i-{number}",
            name=f"m{number}",
            state="running",
            gpu_count=GPUS,
        )
        for number in range(machines)
    )
    parameters: dict[str, Any] = {
        "team": team.pk,
        "accounts": [one.pk for one in accounts],
        "low": made[0].pk,
        "high": made[-1].pk,
        "first": FIRST,
        "past_last": TODAY + timedelta(days=1),
        "gpus": GPUS,
    }
    sums = ", ".join(f"sum({name.strip()})" for name in _COLUMNS.split(","))
    from fleet.telemetry.partitions import ensure_partitions

    ensure_partitions(now=NOW, since=NOW - timedelta(days=2))
    with connection.cursor() as cursor:
        # Millions of rows whose references are right by construction; rows that are written later are checked again.
        cursor.execute(_REFERENCES)
        references = cursor.fetchall()
        for table, name, _definition in references:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        for statement in (_MACHINES, _DAYS, _GROUP_DAYS.format(sums=sums), _MONTH_ROWS.format(sums=sums), _LEDGER):
            cursor.execute(statement, parameters)
        for table, name, definition in references:
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition} NOT VALID")
        cursor.execute("VACUUM (ANALYZE)")
    return parameters


def median_ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def questions(team: Any) -> dict[str, Callable[[], object]]:
    from fleet.costs.spend.spend import By, Where, spend

    month = {"team": team, "start": TODAY.replace(day=1), "end": date(2026, 12, 1)}
    year = {"team": team, "start": FIRST, "end": date(2026, 12, 1)}
    return {
        "the month, one sum": lambda: spend(**month),
        "the month by day and project": lambda: spend(**month, by=(By.DAY, By.PROJECT)),
        "the month by person and state": lambda: spend(**month, by=(By.OWNER, By.STATE)),
        "the month by machine": lambda: spend(**month, by=(By.MACHINE,)),
        "the month of one machine by day": lambda: spend(**month, by=(By.DAY,), where=Where(instances=(1,))),
        "13 months, one sum": lambda: spend(**year),
        "13 months by month and project": lambda: spend(**year, by=(By.MONTH, By.PROJECT)),
        "13 months by day": lambda: spend(**year, by=(By.DAY,)),
        "13 months by machine": lambda: spend(**year, by=(By.MACHINE,)),
    }


def measure_questions(team: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    for words, ask in questions(team).items():
        with CaptureQueriesContext(connection) as queries:
            ask()
        say(f"{words}: {median_ms(ask):.0f} ms, {len(queries)} queries")


def measure_straight(team: Any) -> None:
    from django.db import connection

    def ask(since: date) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_STRAIGHT, {"team": team.pk, "since": since, "until": NOW})
            cursor.fetchall()

    say(
        f"straight from intervals, the month by project, no states: {median_ms(lambda: ask(TODAY.replace(day=1))):.0f} ms"
    )
    say(f"straight from intervals, 13 months by project, no states: {median_ms(lambda: ask(FIRST)):.0f} ms")


def measure_pages(team: Any) -> None:
    """Server time of whole pages, by Django's test client."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from fleet.teams.models import Membership, Role, User

    user = User.objects.create_user("lead", "lead@example.org", "correct horse")
    Membership.objects.create(team=team, user=user, role=Role.VIEWER)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    for query in ("", "&by=owner", "&by=machine"):
        address = f"/t/{team.slug}/costs/?month=2026-11{query}"
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(address)
        # The next request begins to count anew.
        count = len(queries)
        assert answer.status_code == 200
        cpu = time.process_time()
        taken = median_ms(lambda address=address: client.get(address))  # type: ignore[misc]
        cpu = (time.process_time() - cpu) / REPEATS
        say(f"page {address}: {taken:.0f} ms, of them {1000 * cpu:.0f} ms CPU of the web process, {count} queries")


def measure_summing(parameters: dict[str, Any]) -> None:
    """One day of all machines: first when its rows are new, then when nothing changed, then with as much more."""
    from django.db import connection

    from fleet.costs.spend.models import CostDay
    from fleet.costs.spend.roll import sum_step
    from fleet.teams.models import Team

    team = Team.objects.get()
    day = datetime(2026, 11, 29, tzinfo=UTC)

    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO ledger_change (account_id, instance_id, from_at) SELECT account_id, id, %s FROM fleet_instance",
                [day],
            )

    def step() -> float:
        ask()
        began = time.perf_counter()
        sum_step(team, now=datetime(2026, 11, 30, tzinfo=UTC), recent=True)
        return time.perf_counter() - began

    say(f"summing one day, replacing what was there: {step():.1f} s")
    say(f"summing it again, nothing changed: {min(step() for _ in range(3)):.1f} s")
    assert (
        CostDay.objects.filter(day=day.date()).exclude(working_amount=0).count()
        >= parameters["high"] - parameters["low"]
    )


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=5_000)
    arguments = parser.parse_args()
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0"}
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        settings.ALLOWED_HOSTS = ["testserver"]
        from fleet.teams.models import Team

        call_command("migrate", verbosity=0)
        began = time.perf_counter()
        parameters = fill(arguments.machines)
        say(
            f"{arguments.machines} machines, {MONTHS} months, filled in {time.perf_counter() - began:.0f} s; load {os.getloadavg()[0]:.0f}"
        )
        team = Team.objects.get()
        measure_questions(team)
        measure_straight(team)
        measure_summing(parameters)
        measure_pages(team)


if __name__ == "__main__":
    main()
