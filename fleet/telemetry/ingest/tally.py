"""What was committed, counted for /metrics."""

from __future__ import annotations

from collections import Counter

from fleet.meters import meters
from fleet.telemetry.readings import Rows


def count_stored(rows: Rows, dropped: Counter[str], *, source: str) -> None:
    """`source`: agent or exporter."""
    for kind, stored in (("gpu", rows.gpus), ("host", rows.hosts), ("event", rows.events)):
        if stored:
            meters.count("samples", len(stored), kind=kind, source=source)
    if dropped:
        meters.count("dropped_values", dropped.total(), source=source)
