"""How long an hour's look at shared hosts and a count of health take: `python -m tests.bench.quality`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

NOW = datetime(2026, 11, 30, 18, 9, tzinfo=UTC)
UNTIL = NOW.replace(minute=0)
GPUS, DAYS = 8, 8

# One hour in three is crowded; what a GPU and its host read is the same otherwise.
_FILL = """
INSERT INTO fleet_gpu (id, instance_id, uuid, index, name, memory_total_bytes, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT machine.id * %(gpus)s + place, machine.id, 'GPU-' || machine.id || '-' || place, place, 'RTX 4090', 25e9, '', '', '', '2026-10-01'
FROM fleet_instance machine, generate_series(0, %(gpus)s - 1) place;
INSERT INTO gpu_rollup_1h (gpu_id, bucket_at, samples, coverage, working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds,
    unknown_seconds, stopped_seconds, memory_used_bytes_avg, utilization_percent_avg, process_count_avg, sm_clock_mhz_avg, throttle_reasons)
SELECT gpu.id, hour, 360, 1, 3600, 0, 0, 0, 0, 0, 0, 2e10, 95, 1, 2500, 0
FROM generate_series(%(since)s, %(until)s - interval '1 hour', '1 hour') hour, fleet_gpu gpu;
INSERT INTO host_rollup_1h (instance_id, bucket_at, samples, coverage, cpu_percent_avg, cpu_iowait_percent_avg, pressure_cpu_percent_avg,
    pressure_io_percent_avg, disk_read_bytes_per_second_avg, disk_write_bytes_per_second_avg, disk_read_latency_seconds_avg,
    network_rx_bytes_per_second_avg, network_tx_bytes_per_second_avg)
SELECT machine.id, hour, 360, 1, 20, 1, CASE WHEN crowded THEN 20 ELSE 0 END, CASE WHEN crowded THEN 15 ELSE 0 END, 2e8, 2e6,
    CASE WHEN crowded THEN 0.01 ELSE 0.0005 END, 2e7, 1e5
FROM generate_series(%(since)s, %(until)s - interval '1 hour', '1 hour') hour, fleet_instance machine,
    LATERAL (SELECT extract(hour FROM hour)::int %% 3 = 0 AS crowded) AS neighbour;
"""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def fill(machines: int) -> None:
    from django.db import connection

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team
    from fleet.telemetry.partitions import ensure_partitions
    from fleet.telemetry.rollups.models import RollupProgress

    team = Team.objects.create(name="Acme", slug="acme")
    account = ProviderAccount.objects.create(team=team, kind="vast", name="Vast.ai")
    known: dict[str, Any] = {"state": "running", "gpu_count": GPUS, "tenancy": "community_host"}
    Instance.objects.bulk_create(
        Instance(team=team, account=account, external_id=f"i-{number}", name=f"m{number}", **known)
        for number in range(machines)
    )
    since = UNTIL - timedelta(days=DAYS)
    ensure_partitions(now=NOW, since=since - timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute(_FILL, {"gpus": GPUS, "since": since, "until": UNTIL})
        cursor.execute("VACUUM (ANALYZE)")
    RollupProgress.objects.update_or_create(resolution="1h", defaults={"rolled_until": UNTIL})


def timed(words: str, act: Callable[[], int]) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    began, used = time.perf_counter(), time.process_time()
    with CaptureQueriesContext(connection) as queries:
        count = act()
    in_database = sum(float(query["time"]) for query in queries)
    say(
        f"{words}: {count} rows in {time.perf_counter() - began:.1f} s, {in_database:.1f} s of them in the database, "
        f"{time.process_time() - used:.1f} s CPU of the process, {len(queries)} queries"
    )


def measure() -> None:
    from fleet.quality.health.days import count_health
    from fleet.quality.health.providers import score_providers
    from fleet.quality.neighbours.judging import judge_neighbours

    timed("the first day of hours", lambda: judge_neighbours(now=NOW))
    timed("an hour's look", lambda: judge_neighbours(now=NOW))
    timed("the first count of health", lambda: count_health(now=NOW))
    timed("an hour's count", lambda: count_health(now=NOW))
    timed("scores of providers", lambda: score_providers(now=NOW))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=1_000)
    options = parser.parse_args()
    with servers():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        fill(options.machines)
        measure()


if __name__ == "__main__":
    main()
