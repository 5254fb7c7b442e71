"""What charts, lists and rollups of a large fleet take in PostgreSQL: `python -m tests.bench.queries --json`.

By default 10,000 GPUs with one hour of samples every 10 s (some 1.5 GB), and 30 days of hourly rollups for 1,000 of them. Every figure
stands beside the plain way of doing the same: Django's ORM and Python for reads, the textbook's aggregates for the rollup. Medians of
several runs on a warm cache; the rollup is the best of its buckets, its writes and commit included.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench import instances
from tests.bench.ingest import servers

GPUS_PER_MACHINE = 8
INTERVAL_SECONDS = 10
REPEATS = 15
TEXTBOOK_BUCKETS = 3
DAYS = 30
FIELDS = ("utilization_percent", "sm_activity", "memory_used_bytes", "power_watts", "temperature_celsius")


@dataclass(frozen=True, slots=True)
class Scale:
    gpus: int
    hours: float
    rollup_gpus: int


def median_ms(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    work()
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return round(1000 * statistics.median(took), 2)


def fill(scale: Scale, *, now: datetime) -> int:
    """Samples in the order in which they would have come, every reading there; returns how many."""
    from django.db import connection

    from fleet.telemetry.models import Agent
    from fleet.telemetry.partitions import ensure_partitions
    from fleet.telemetry.readings import GPU_COLUMNS

    Agent.objects.update(interval_seconds=INTERVAL_SECONDS)
    ensure_partitions(now=now, since=now - timedelta(days=DAYS + 1))
    values = ", ".join(_random_reading(name) for name in GPU_COLUMNS)
    steps = int(scale.hours * 3600 / INTERVAL_SECONDS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO gpu_sample (gpu_id, sampled_at, state, {', '.join(GPU_COLUMNS)}) "
            "SELECT id, %s + make_interval(secs => step * %s + id %% 10), 1 + id %% 5, "
            f"{values} FROM generate_series(0, %s) step, fleet_gpu ORDER BY step, id",
            [now - timedelta(hours=scale.hours), INTERVAL_SECONDS, steps - 1],
        )
        stored = int(cursor.rowcount)
        cursor.execute("ANALYZE gpu_sample")
    return stored


def _random_reading(name: str) -> str:
    if name == "throttle_reasons":
        return "(random() * 8)::bigint"
    return "random()" if name.endswith(("activity", "occupancy")) else "round((random() * 1000)::numeric, 1)"


def fill_rollups(scale: Scale, *, now: datetime) -> int:
    """Hours as the job writes them: bucket by bucket, each with its GPUs."""
    from django.db import connection

    from fleet.telemetry.rollups.columns import GPU_ROLLED, STATISTICS
    from fleet.telemetry.state_codes import SECONDS_COLUMNS

    columns = [*SECONDS_COLUMNS.values(), *(f"{name}_{one}" for name in GPU_ROLLED for one in STATISTICS)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO gpu_rollup_1h (gpu_id, bucket_at, samples, coverage, {', '.join(columns)}) "
            f"SELECT id, hour, 360, 1, {', '.join('random() * 100' for _ in columns)} "
            "FROM generate_series(%s, %s, interval '1 hour') hour, (SELECT id FROM fleet_gpu ORDER BY id LIMIT %s) gpu "
            "ORDER BY hour, id",
            # The hour before now is not rolled up yet.
            [now - timedelta(days=DAYS), now - timedelta(hours=2), scale.rollup_gpus],
        )
        stored = int(cursor.rowcount)
        cursor.execute("VACUUM ANALYZE gpu_rollup_1h")
    return stored


def rollup_seconds(scale: Scale, *, now: datetime) -> dict[str, float]:
    """Rolls every five minutes of the samples up and counts the fleet, as charts that end now need them; a few of them in the textbook's way as well."""
    from django.db import connection, transaction

    from fleet.telemetry.rollups import roll
    from fleet.telemetry.rollups.columns import FIVE_MINUTES, ROLLUPS
    from fleet.telemetry.rollups.fleet import step_fleet
    from fleet.telemetry.rollups.fleet_models import FleetRollupProgress
    from fleet.telemetry.rollups.models import RollupProgress

    first = FIVE_MINUTES.floor(now - timedelta(hours=scale.hours))
    for resolution in ROLLUPS:
        RollupProgress.objects.create(resolution=resolution.name, rolled_until=resolution.floor(first))
    FleetRollupProgress.objects.create(resolution=FIVE_MINUTES.name, rolled_until=first)
    ours, plain = [], []
    for number in range((now - first) // FIVE_MINUTES.width):
        since = first + number * FIVE_MINUTES.width
        began = time.perf_counter()
        if not roll._step_forward(FIVE_MINUTES, since + FIVE_MINUTES.width + roll.GRACE) or not step_fleet(
            FIVE_MINUTES
        ):
            raise RuntimeError("Nothing was rolled up.")
        ours.append(time.perf_counter() - began)
        if number >= TEXTBOOK_BUCKETS:
            continue
        with transaction.atomic(), connection.cursor() as cursor:
            began = time.perf_counter()
            cursor.execute(_textbook(), [since, since, since + FIVE_MINUTES.width])
            plain.append(time.perf_counter() - began)
            transaction.set_rollback(True)
    return {"rollup_10000_s": round(min(ours), 2), "rollup_10000_textbook_s": round(min(plain), 2)}


def _textbook() -> str:
    """One aggregate for each figure, and no states: less than ours keeps."""
    from fleet.telemetry.rollups.columns import GPU_ROLLED, STATISTICS

    columns = ", ".join(f"{name}_{one}" for name in GPU_ROLLED for one in STATISTICS)
    figures = ", ".join(
        f"min({name}), avg({name}), max({name}), percentile_cont(0.95) WITHIN GROUP (ORDER BY {name})"
        for name in GPU_ROLLED
    )
    seconds = "working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds, unknown_seconds"
    return (
        f"INSERT INTO gpu_rollup_1h (gpu_id, bucket_at, samples, coverage, {seconds}, stopped_seconds, {columns}) "
        f"SELECT gpu_id, %s, count(*), 1, 0, 0, 0, 0, 0, 0, 0, {figures} FROM gpu_sample "
        "WHERE sampled_at >= %s AND sampled_at < %s GROUP BY gpu_id ON CONFLICT DO NOTHING"
    )


def reads(scale: Scale, *, now: datetime) -> dict[str, float]:
    from fleet.inventory.models import GPU
    from fleet.telemetry.models import GpuLatest
    from fleet.telemetry.series import gpu_series, merged_gpu_series

    ids = list(GPU.objects.order_by("id").values_list("id", flat=True)[: scale.rollup_gpus])
    hour = {"since": now - timedelta(hours=1), "until": now}
    month = {"since": now - timedelta(days=DAYS), "until": now}

    def idle_list() -> None:
        idle = GpuLatest.objects.filter(idle_since__isnull=False).order_by("idle_since")
        list(idle.values_list("gpu_id", "idle_since", "gpu__instance__name")[:100])

    def merged(statistic: str) -> Callable[[], Any]:
        return lambda: merged_gpu_series(gpu_ids=ids, fields=FIELDS[:1], statistic=statistic, **month)  # type: ignore[arg-type]

    return {
        "idle_list_ms": median_ms(idle_list),
        "gpu_1h_ms": median_ms(lambda: gpu_series(gpu_ids=ids[:1], fields=FIELDS, **hour)),  # type: ignore[arg-type]
        "gpu_1h_plain_ms": median_ms(lambda: plain_raw(ids[0], **hour)),
        "gpu_30d_ms": median_ms(lambda: gpu_series(gpu_ids=ids[5:6], fields=FIELDS, **month)),  # type: ignore[arg-type]
        "gpus1000_30d_ms": median_ms(merged("mean"), 7),
        "gpus1000_30d_max_ms": median_ms(merged("max"), 7),
        "gpus1000_30d_plain_ms": median_ms(lambda: plain_month(ids, **month), 1),
        **fleet_reads(ids, **month),
    }


def fleet_reads(ids: list[int], *, since: datetime, until: datetime) -> dict[str, float]:
    """Median and 95th percentile across GPUs, GPU-hours by state and power; beside it, percentiles of the GPUs' own hours in SQL."""
    from fleet.teams.models import Team
    from fleet.telemetry.usage import Dimension, fleet_usage

    asked: dict[str, Any] = {
        "team_ids": list(Team.objects.values_list("pk", flat=True)),
        "since": since,
        "until": until,
    }

    def charts(split: Dimension | None = None) -> None:
        for line in fleet_usage(**asked, split=split).lines:
            line.utilization(0.5), line.utilization(0.95), line.power_watts()

    return {
        "fleet_percentiles_30d_ms": median_ms(charts),
        "fleet_percentiles_30d_split_ms": median_ms(lambda: charts(Dimension.GPU_MODEL)),
        "fleet_percentiles_30d_plain_ms": median_ms(lambda: plain_percentiles(ids, since=since, until=until), 3),
    }


def plain_percentiles(ids: list[int], *, since: datetime, until: datetime) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT date_bin('3 hours', bucket_at, 'epoch'), "
            "percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY utilization_percent_avg) FROM gpu_rollup_1h "
            "WHERE gpu_id = ANY(%s) AND bucket_at >= %s AND bucket_at < %s GROUP BY 1",
            [ids, since, until],
        )
        return list(cursor.fetchall())


def count_fleet(*, now: datetime) -> dict[str, float]:
    """Counts the month of hours together, as the job does after an upgrade."""
    from fleet.telemetry.rollups.columns import HOUR
    from fleet.telemetry.rollups.fleet import begin_fleet, step_fleet
    from fleet.telemetry.rollups.fleet_models import FleetRollupHour

    began = time.perf_counter()
    begin_fleet(now=now)
    while step_fleet(HOUR):
        pass
    return {
        "fleet_count_30d_s": round(time.perf_counter() - began, 2),
        "fleet_rollup_rows": FleetRollupHour.objects.count(),
    }


def plain_raw(gpu_id: int, *, since: datetime, until: datetime) -> dict[int, float]:
    """Every sample into Python, means there."""
    from fleet.telemetry.models import GpuSample

    rows = GpuSample.objects.filter(gpu_id=gpu_id, sampled_at__gte=since, sampled_at__lt=until)
    found: dict[int, list[float]] = defaultdict(list)
    for at, *values in rows.values_list("sampled_at", *FIELDS):
        found[int(at.timestamp() // 20)].append(values[0])
    return {bucket: statistics.fmean(values) for bucket, values in found.items()}


def plain_month(ids: list[int], *, since: datetime, until: datetime) -> dict[datetime, tuple[float, float]]:
    """The rollups of every GPU into Python, mean and highest there."""
    from fleet.telemetry.rollups.models import GpuRollupHour

    rows = GpuRollupHour.objects.filter(gpu_id__in=ids, bucket_at__gte=since, bucket_at__lt=until)
    found: dict[datetime, list[tuple[float, float]]] = defaultdict(list)
    columns = ("bucket_at", "utilization_percent_avg", "utilization_percent_max")
    for at, mean, highest in rows.values_list(*columns).iterator(chunk_size=10_000):
        found[at].append((mean, highest))
    return {
        at: (statistics.fmean(mean for mean, _ in pairs), max(high for _, high in pairs)) for at, pairs in found.items()
    }


def sizes() -> dict[str, float]:
    """Bytes a row takes with its indexes."""
    from fleet.telemetry.rollups.status import telemetry_status

    tables = {table.name: table for table in telemetry_status(now=datetime.now(UTC)).tables}
    found: dict[str, float] = {}
    for name in ("gpu_sample", "gpu_rollup_1h"):
        rows = sum(partition.rows or 0 for partition in tables[name].partitions)
        found[f"{name}_bytes_a_row"] = round(tables[name].bytes / rows) if rows else 0
    return found


def prepare(machines: int) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0"}
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from config.web import GC_THRESHOLDS

    gc.set_threshold(*GC_THRESHOLDS)
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    instances.MACHINES = machines
    instances.seed()


def run(scale: Scale) -> dict[str, float]:
    from fleet.telemetry.rollups.columns import HOUR

    now = HOUR.floor(datetime.now(UTC))
    rows = fill(scale, now=now)
    figures: dict[str, float] = {"rows": rows, "gpus": scale.gpus, "hours": scale.hours}
    figures["rollup_rows"] = fill_rollups(scale, now=now)
    figures |= rollup_seconds(scale, now=now)
    _rolled_to(now)
    figures |= count_fleet(now=now)
    figures |= reads(scale, now=now)
    figures["overview_10000_ms"] = instances.measure("/t/acme/")["median_ms"]
    return figures | sizes()


def _rolled_to(now: datetime) -> None:
    """The hours that were filled in count as rolled."""
    from fleet.telemetry.rollups.models import RollupProgress

    RollupProgress.objects.filter(resolution="1h").update(rolled_until=now - timedelta(hours=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--hours", type=float, default=1.0, help="of samples; an hour of 10,000 GPUs is some 1.5 GB")
    parser.add_argument("--rollup-gpus", type=int, default=1_000, help="with 30 days of rollups")
    arguments = parser.parse_args()
    scale = Scale(arguments.gpus, arguments.hours, arguments.rollup_gpus)
    with servers():
        prepare(scale.gpus // GPUS_PER_MACHINE)
        figures = run(scale)
    if not arguments.json:
        for name, value in figures.items():
            sys.stdout.write(f"{name:>26}  {value:,}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
