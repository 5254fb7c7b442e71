"""Bytes that a kept GPU sample takes: packed, as rows, and in VictoriaMetrics. `python -m tests.bench.history --json`.

Two fleets: a real trace (72 GPUs for a day at 57 s, two readings each; it lies beside the checkout, and is left out where it does not), and a made
one in which every reading is there and moves (32 GPUs for a day at 10 s, rounded as the agent does). Each is stored as ingest stores it,
sorted as a closed day is, packed, and sent to a VictoriaMetrics through its import, state included; its parts are merged before they are measured.
Sizes are those on disk with indexes, after VACUUM. An hour of one GPU is read as a chart does, from rows and from packed hours.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench.ingest import ROOT, servers
from tests.bench.queries import median_ms
from tests.bench.recorded import Readings, made, traced
from tests.bench.victoria import bring_in, count_samples, stored, victoria_metrics

TRACE = ROOT.parent / "shared" / "traces" / "genai_serving_gpu.csv.gz"
# Old enough to be packed; all of one day.
DAYS_AGO = 5


def prepare() -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0", "RAW_HISTORY_DAYS": "400"}
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def make_gpus(count: int) -> list[int]:
    from fleet.inventory.models import GPU, Instance, ProviderAccount
    from fleet.teams.models import Team

    team, _ = Team.objects.get_or_create(name="Acme", slug="acme")
    account, _ = ProviderAccount.objects.get_or_create(team=team, kind="manual", name="By hand")
    first = Instance.objects.count()
    machines = Instance.objects.bulk_create(
        Instance(team=team, account=account, external_id=f"i-{number}", name=f"m-{number}", state="running")
        for number in range(first, first + count)
    )
    gpus = GPU.objects.bulk_create(GPU(instance=machine, uuid=f"GPU-{machine.pk}", index=0) for machine in machines)
    return [gpu.pk for gpu in gpus]


def with_states(one: Readings, midnight: datetime) -> Readings:
    from fleet.telemetry.readings import state_code
    from fleet.telemetry.wire import GpuWire

    rows = zip(*one.columns.values(), strict=True)
    readings = (GpuWire(uuid="GPU", **dict(zip(one.columns, row, strict=True))) for row in rows)
    moments = (midnight + timedelta(seconds=at) for at in one.at)
    states = [state_code(reading, moment, None, None) for reading, moment in zip(readings, moments, strict=True)]
    return Readings(one.at, {"state": states, **one.columns})


def store(fleet: dict[int, Readings], midnight: datetime) -> int:
    """In the order of time, as they would have come. Returns how many samples."""
    from django.db import connection

    names = list(next(iter(fleet.values())).columns)
    rows = [
        (midnight + timedelta(seconds=at), pk, *row)
        for pk, one in fleet.items()
        for at, *row in zip(one.at, *one.columns.values(), strict=True)
    ]
    rows.sort(key=lambda row: row[:2])
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY gpu_sample (sampled_at, gpu_id, {', '.join(names)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)
    return len(rows)


def relation_bytes(parent: str) -> int:
    """Of all partitions of a table, with their indexes and TOAST."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {parent}")
        cursor.execute(
            "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = %s::regclass", [parent]
        )
        return int(cursor.fetchone()[0])


def read_ms(pk: int, fields: Sequence[str], midnight: datetime) -> float:
    from fleet.telemetry.series import gpu_series

    span: dict[str, Any] = {"since": midnight + timedelta(minutes=30), "until": midnight + timedelta(minutes=90)}
    if gpu_series(gpu_ids=[pk], fields=fields, **span).resolution != "raw":
        raise RuntimeError("The samples of the day are not read.")
    return median_ms(lambda: gpu_series(gpu_ids=[pk], fields=fields, **span))


def as_metrics(fleet: dict[int, Readings], midnight: datetime) -> Iterator[dict[str, Any]]:
    for pk, one in fleet.items():
        moments = [round((midnight.timestamp() + at) * 1000) for at in one.at]
        for name, column in one.columns.items():
            known = [(at, value) for at, value in zip(moments, column, strict=True) if value is not None]
            yield {
                "metric": {"__name__": f"rackrent_{name}", "gpu": str(pk)},
                "timestamps": [at for at, _ in known],
                "values": [value for _, value in known],
            }


def rounded(one: Readings) -> Readings:
    """What a packed hour keeps of it."""
    from fleet.telemetry.packed.codec import pack_hour, unpack_hour
    from fleet.telemetry.packed.fields import GPU_FIELDS

    kept = unpack_hour(pack_hour(one.columns, GPU_FIELDS), GPU_FIELDS, list(one.columns))
    return Readings(one.at, {name: list(column) for name, column in kept.items()})


def measure_postgres(fleet: dict[int, Readings], midnight: datetime) -> dict[str, float]:
    from django.db import connection
    from django.utils import timezone

    from fleet.telemetry.packed.pack import pack_old_days
    from fleet.telemetry.partitions import drop_old_partitions, ensure_partitions
    from fleet.telemetry.rollups.columns import ROLLUPS
    from fleet.telemetry.rollups.models import RollupProgress
    from fleet.telemetry.rollups.sort import sort_closed_days

    now = timezone.now()
    ensure_partitions(now=now, since=midnight)
    empty = relation_bytes("gpu_sample")
    samples = store(fleet, midnight)
    for resolution in ROLLUPS:
        RollupProgress.objects.update_or_create(resolution=resolution.name, defaults={"rolled_until": now})
    sort_closed_days(now=now)
    pk, fields = next(iter(fleet)), list(next(iter(fleet.values())).columns)[1:3]
    rows = {"rows_bytes": (relation_bytes("gpu_sample") - empty) / samples, "rows_1h_ms": read_ms(pk, fields, midnight)}
    used, began = time.process_time(), time.monotonic()
    if pack_old_days(now=now).samples != samples:
        raise RuntimeError("Not every sample was packed.")
    took = {"pack_s": time.monotonic() - began, "pack_cpu_us": (time.process_time() - used) / samples * 1e6}
    drop_old_partitions(now=now)
    packed = {"packed_bytes": relation_bytes("gpu_hour") / samples, "packed_1h_ms": read_ms(pk, fields, midnight)}
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE gpu_hour")
    return {"samples": samples, **rows, **packed, **took}


def victoria_bytes(fleet: dict[int, Readings], midnight: datetime) -> float:
    """A sample, with the index of the series."""
    values = sum(value is not None for one in fleet.values() for column in one.columns.values() for value in column)
    samples = sum(len(one.at) for one in fleet.values())
    with victoria_metrics() as home:
        bring_in(as_metrics(fleet, midnight))
        size = stored(home)
        if count_samples() != values:
            raise RuntimeError("VictoriaMetrics did not keep every value.")
    return size / samples


def measure(fleet: Sequence[Readings]) -> dict[str, float]:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    midnight = today - timedelta(days=DAYS_AGO)
    known = {pk: with_states(one, midnight) for pk, one in zip(make_gpus(len(fleet)), fleet, strict=True)}
    figures = {
        **measure_postgres(known, midnight),
        "victoriametrics_bytes": victoria_bytes(known, midnight),
        "victoriametrics_rounded_bytes": victoria_bytes({pk: rounded(one) for pk, one in known.items()}, midnight),
    }
    return {name: round(figure, 2) for name, figure in figures.items()}


def fleets(trace: Path) -> Iterator[tuple[str, list[Readings]]]:
    if trace.exists():
        yield "trace", traced(trace)
    yield "made", made()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument("--trace", type=Path, default=TRACE)
    arguments = parser.parse_args()
    with servers():
        prepare()
        figures = {name: measure(fleet) for name, fleet in fleets(arguments.trace)}
    if not arguments.json:
        for name, found in figures.items():
            for what, value in found.items():
                sys.stdout.write(f"{name:>6} {what:>36}  {value:,}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
