"""What it takes to give a large fleet to Prometheus: `python -m tests.bench.giving --json`.

10,000 GPUs of 1,250 machines, every reading there, seconds in all seven states, 20 observations a machine. `read_ms` is all queries of
one scrape, `write_ms` the page of it, `packed_ms` the same through gzip as a Prometheus asks for it; beside it the same series written by
prometheus_client. `health_ms` is Rackrent's own page. Medians on a warm cache, without a network.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.bench.ingest import servers
from tests.bench.queries import GPUS_PER_MACHINE, median_ms, prepare

REPEATS = 5
OBSERVATIONS = 20


def fill(now: datetime) -> None:
    from fleet.inventory.models import GPU, Instance, Observation
    from fleet.telemetry.models import GpuLatest, HostLatest
    from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS
    from fleet.telemetry.rollups.models import GpuStateTotal
    from fleet.telemetry.state_codes import SECONDS_COLUMNS

    health = {"energy_joules": 1e9, "pcie_replays": 0, "ecc_corrected": 0, "ecc_uncorrected": 0, "encoder_percent": 0.0}
    health |= {"decoder_percent": 0.0, "remapped_rows_corrected": 0, "remapped_rows_uncorrected": 0}
    GpuLatest.objects.update(**dict.fromkeys(GPU_COLUMNS, 7), memory_total_bytes=80 << 30, health=health)
    HostLatest.objects.update(**dict.fromkeys(HOST_COLUMNS, 7))
    seconds = dict.fromkeys(SECONDS_COLUMNS.values(), 86_400.5)
    GpuStateTotal.objects.bulk_create(
        GpuStateTotal(gpu_id=pk, **seconds) for pk in GPU.objects.values_list("pk", flat=True)
    )
    Instance.objects.update(last_seen_at=now)
    seen = {"state": "running", "billing": "full", "currency": "USD", "rule_version": 1}
    Observation.objects.bulk_create(
        Observation(instance_id=pk, seen_at=now - timedelta(hours=30 * number), price_per_hour=Decimal(number), **seen)
        for pk in Instance.objects.values_list("pk", flat=True)
        for number in range(1, OBSERVATIONS + 1)
    )


def plain(page: bytes) -> Any:
    """The same families, ready for prometheus_client to write."""
    from prometheus_client.parser import text_string_to_metric_families

    class Parsed:
        families = list(text_string_to_metric_families(page.decode()))

        def collect(self) -> Any:
            return self.families

    return Parsed()


def run() -> dict[str, float]:
    from django.conf import settings
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone
    from prometheus_client.exposition import generate_latest

    from config.metrics.collect import collect
    from fleet.teams.models import Team
    from fleet.telemetry.api.metrics import gzipped
    from fleet.telemetry.giving.families import families_of
    from fleet.telemetry.giving.read import read_fleet
    from fleet.telemetry.giving.text import pieces

    now = timezone.now()
    fill(now)
    teams = list(Team.objects.values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as queries:
        fleet = read_fleet(teams, now=now)
    page = b"".join(pieces(families_of(fleet, now=now)))
    packed = b"".join(gzipped(pieces(families_of(fleet, now=now))))
    parsed = plain(page)
    settings.METRICS_TOKEN = "x" * 32
    return {
        "gpus": len(fleet.gpus),
        "series": sum(1 for line in page.splitlines() if not line.startswith(b"#")),
        "queries": len(queries),
        "read_ms": median_ms(lambda: read_fleet(teams, now=now), REPEATS),
        "write_ms": median_ms(lambda: _drain(pieces(families_of(fleet, now=now))), REPEATS),
        "packed_ms": median_ms(lambda: _drain(gzipped(pieces(families_of(fleet, now=now)))), REPEATS),
        "prometheus_client_ms": median_ms(lambda: generate_latest(parsed), 2),
        "page_mib": round(len(page) / (1 << 20), 1),
        "packed_mib": round(len(packed) / (1 << 20), 2),
        "count_states_s": count_seconds(now),
        "health_ms": median_ms(lambda: asyncio.run(collect()), REPEATS),
    }


def count_seconds(now: datetime) -> float:
    """Five minutes of every GPU added to its seconds in each state, with the commit: once in five minutes, after the rollup."""
    from django.db import connection

    from fleet.telemetry.partitions import ensure_partitions
    from fleet.telemetry.rollups.columns import FIVE_MINUTES
    from fleet.telemetry.rollups.models import RollupProgress
    from fleet.telemetry.rollups.totals import PROGRESS, count_states
    from fleet.telemetry.state_codes import SECONDS_COLUMNS

    until = FIVE_MINUTES.floor(now)
    since = until - FIVE_MINUTES.width
    ensure_partitions(now=now)
    columns = ", ".join(SECONDS_COLUMNS.values())
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO gpu_rollup_5min (gpu_id, bucket_at, samples, coverage, {columns}) "
            f"SELECT id, %s, 30, 1, {', '.join('43' for _ in SECONDS_COLUMNS)} FROM fleet_gpu",
            [since],
        )
    RollupProgress.objects.create(resolution=FIVE_MINUTES.name, rolled_until=until)
    RollupProgress.objects.create(resolution=PROGRESS, rolled_until=since)
    began = time.perf_counter()
    if count_states() != 1:
        raise RuntimeError("Nothing was counted.")
    return round(time.perf_counter() - began, 2)


def _drain(chunks: Any) -> None:
    for _ in chunks:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument("--gpus", type=int, default=10_000)
    arguments = parser.parse_args()
    with servers():
        prepare(arguments.gpus // GPUS_PER_MACHINE)
        figures = run()
    if not arguments.json:
        for name, value in figures.items():
            sys.stdout.write(f"{name:>22}  {value:,}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
