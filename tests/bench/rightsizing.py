"""How long the daily look at a fleet takes, and the sections that show it: `python -m tests.bench.rightsizing`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

NOW = datetime(2026, 11, 30, 18, tzinfo=UTC)
GPUS, OFFERS = 4, 2_000

_FILL = """
INSERT INTO fleet_gpu (id, instance_id, uuid, index, name, memory_total_bytes, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT machine.id * %(gpus)s + place, machine.id, 'GPU-' || machine.id || '-' || place, place, 'H100', 85520809984, '', '', '', '2026-10-01'
FROM fleet_instance machine, generate_series(0, %(gpus)s - 1) place;
INSERT INTO gpu_rollup_1h (gpu_id, bucket_at, samples, coverage, working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds,
    unknown_seconds, stopped_seconds, memory_used_bytes_max, utilization_percent_avg)
SELECT gpu.id, hour, 360, 1, CASE WHEN gpu.index < 3 THEN 3000 ELSE 0 END, 0, 600, 0, 0, 0, 0, 4e10 + gpu.id %% 7 * 1e9, 20 + gpu.id %% 60
FROM generate_series(%(since)s, %(until)s - interval '1 hour', '1 hour') hour, fleet_gpu gpu;
INSERT INTO host_rollup_1h (instance_id, bucket_at, samples, coverage, memory_used_bytes_max, cpu_percent_p95, filesystem_used_bytes_max)
SELECT machine.id, hour, 360, 1, 1e11, 20, 3e11
FROM generate_series(%(since)s, %(until)s - interval '1 hour', '1 hour') hour, fleet_instance machine;
"""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def fill(machines: int, days: int) -> Any:
    from django.db import connection

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.inventory.offers.models import Offer, OfferSource
    from fleet.providers.gpus import NAMES
    from fleet.teams.models import Team
    from fleet.telemetry.partitions import ensure_partitions

    team = Team.objects.create(name="Acme", slug="acme")
    account = ProviderAccount.objects.create(team=team, kind="runpod", name="RunPod")
    known = {
        "state": "running",
        "gpu_model": "H100 SXM",
        "gpu_count": GPUS,
        "price_per_hour": 14,
        "market": "on_demand",
    }
    Instance.objects.bulk_create(
        Instance(team=team, account=account, external_id=f"i-{number}", name=f"m{number}", **known)
        for number in range(machines)
    )
    models, source = sorted(NAMES), OfferSource.objects.create(team=team, kind="live", name="Live")
    Offer.objects.bulk_create(
        Offer(
            source=source, key=str(number), provider=f"p{number % 12}", gpu_model=models[number % len(models)],
            gpu_count=1 + number % 8, gpu_memory_mib=81_920, price_per_hour=1 + number % 40, currency="USD",
            market=("on_demand", "spot")[number % 2], seen_at=NOW,
        )
        for number in range(OFFERS)
    )  # fmt: skip
    ensure_partitions(now=NOW, since=NOW - timedelta(days=days + 1))
    given: dict[str, Any] = {"gpus": GPUS, "since": NOW - timedelta(days=days), "until": NOW}
    with connection.cursor() as cursor:
        cursor.execute(_FILL, given)
        cursor.execute("VACUUM (ANALYZE)")
    return team


def measure(team: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from fleet.costs.rightsizing.look import look_at_machines
    from fleet.costs.rightsizing.shown import left_alone, lines_of, open_rows, total_of

    for words in ("the first look", "the next one"):
        began, used = time.perf_counter(), time.process_time()
        with CaptureQueriesContext(connection) as queries:
            count = look_at_machines(team=team, now=NOW)
        in_database = sum(float(query["time"]) for query in queries)
        say(
            f"{words} at {count} machines: {time.perf_counter() - began:.1f} s, of them {in_database:.1f} s in the database and "
            f"{time.process_time() - used:.1f} s CPU of the process, {len(queries)} queries"
        )
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        total = total_of(team)
        lines, alone = lines_of(open_rows(team)[:5]), left_alone(team, 4)
    taken = 1000 * (time.perf_counter() - began)
    say(
        f"the section: {taken:.0f} ms, {len(queries)} queries, {total.headline}, {len(lines)} shown, {len(alone)} left alone"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=5_000)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    with servers():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        measure(fill(options.machines, options.days))


if __name__ == "__main__":
    main()
