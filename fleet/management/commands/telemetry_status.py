"""manage.py telemetry_status: partitions and their sizes, how far rollups have come, and how complete samples are."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from fleet.formats import bytes_text, duration_text, number_text
from fleet.telemetry.rollups.status import (
    PartitionStatus,
    RollupStatus,
    TableStatus,
    TelemetryStatus,
    telemetry_status,
)


class Command(BaseCommand):
    help = "Show the partitions of samples and rollups, how far rollups lag behind, and the coverage of the last day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="as one JSON document, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        status = telemetry_status(now=timezone.now())
        if options["json"]:
            self.stdout.write(json.dumps(asdict(status), cls=DjangoJSONEncoder))
            return
        for table in status.tables:
            self._show_table(table)
        for rollup in status.rollups:
            self.stdout.write(_rollup_line(rollup))
        self.stdout.write(f"readings lie in: {status.engine} (TELEMETRY_STORE)")
        if status.overdue:
            self.stdout.write(
                f"kept past their time: {', '.join(status.overdue)}; rollups or packing wait for something"
            )
        self.stdout.write(_history_line(status))
        shares = (("GPUs", status.gpu_coverage), ("machines", status.host_coverage))
        words = ", ".join(f"{name} {_percent(share)}" for name, share in shares)
        self.stdout.write(f"samples that came in the last 24 h: {words}")

    def _show_table(self, table: TableStatus) -> None:
        count = len(table.partitions)
        if not table.kept_days and not count:
            return
        self.stdout.write(
            f"{table.name}: {bytes_text(table.bytes)} in {count} partitions, kept for {table.kept_days} days"
        )
        for partition in table.partitions:
            self.stdout.write(_partition_line(partition))


def _partition_line(partition: PartitionStatus) -> str:
    rows = "?" if partition.rows is None else f"{partition.rows:,}"
    span = f"{partition.begins_at:%Y-%m-%d} to {partition.ends_at:%Y-%m-%d}"
    return f"  {partition.name:<26} {span}  {rows:>14} rows  {bytes_text(partition.bytes):>10}"


def _rollup_line(rollup: RollupStatus) -> str:
    if rollup.rolled_until is None or rollup.lag_seconds is None:
        return f"rollups of {rollup.resolution}: none yet"
    late = f", {rollup.late_buckets} late to be rolled again" if rollup.late_buckets else ""
    until = f"{rollup.rolled_until:%Y-%m-%d %H:%M} UTC"
    return f"rollups of {rollup.resolution}: until {until}, {duration_text(rollup.lag_seconds)} ago{late}"


def _history_line(status: TelemetryStatus) -> str:
    history = status.history
    sizes = {table.name: table.bytes for table in status.tables}
    kinds = (("GPU", history.gpu_samples, sizes["gpu_hour"]), ("machine", history.host_samples, sizes["host_hour"]))
    held = ", ".join(
        f"{samples:,} samples of {name}s at {size / samples:.1f} B each" for name, samples, size in kinds if samples
    )
    kept = f"kept for {history.kept_days} days" if history.kept_days else "off (RAW_HISTORY_DAYS)"
    waiting = f"; {', '.join(history.waiting)} to be packed" if history.waiting else ""
    return f"packed history: {kept}{'; ' if held else ''}{held}{waiting}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{number_text(100 * share)}%"
