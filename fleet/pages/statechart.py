"""GPUs by state over the day, as a stacked chart and as the table behind it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from fleet.downloads import Table
from fleet.pages.downloads import counts_table
from fleet.pages.fleet import Fleet
from fleet.pages.history import History, kept_history, state_history
from fleet.states import GpuState
from fleet.telemetry.words import resolution_words
from fleet.words import state_word

# A day of a very large fleet is too much to read for one chart: the span shrinks with the fleet, and says so.
SPANS = ((2_000, 24),)
SHORTEST_HOURS = 0.25
POINTS = 97
TABLE_ROWS = 12
KEPT_SECONDS = 120
CHART = "states"
# Working GPUs are what one hopes for; the chart shows the rest.
SHOWN = (GpuState.HELD_IDLE, GpuState.FREE, GpuState.STARVED, GpuState.STALLED, GpuState.UNKNOWN)


def draw_states(fleet: Fleet) -> dict[str, Any]:
    """Context of components/states_chart.html."""
    hours = _hours(fleet)
    kept = kept_history(
        machines=fleet.machines,
        until=fleet.at,
        span=timedelta(hours=hours),
        max_points=POINTS,
        kept_seconds=KEPT_SECONDS,
    )
    counts = kept.counts()
    return {
        "chart": chart(kept, counts),
        "rows": table_rows(kept.starts, counts),
        "states": SHOWN,
        "hours": hours,
        "bucket_minutes": max(1, round(kept.bucket_seconds / 60)),
        "source": resolution_words(kept.resolution),
        "drawn_at": kept.starts[-1] if kept.starts else None,
    }


def states_file(fleet: Fleet, _wanted: str) -> dict[str, Table]:
    """Every state, the working ones too. Raises StoreError."""
    since = fleet.at - timedelta(hours=_hours(fleet))
    history = state_history(machines=fleet.machines, since=since, until=fleet.at, max_points=POINTS)
    return {CHART: counts_table(history)}


def _hours(fleet: Fleet) -> float:
    return next((hours for limit, hours in SPANS if fleet.gpu_count <= limit), SHORTEST_HOURS)


def chart(history: History, counts: list[Counter[GpuState]]) -> dict[str, Any]:
    """What charts.js draws; colours are token names."""
    return {
        "kind": "states",
        "start": history.starts[0].timestamp(),
        "step": history.bucket_seconds,
        "traces": [
            {"state": state.value, "name": state_word(state), "y": [count[state] for count in counts]}
            for state in SHOWN
        ],
    }


def table_rows(starts: list[datetime], counts: list[Counter[GpuState]]) -> list[tuple[datetime, list[int]]]:
    """Evenly spread buckets as rows, oldest first, one column a state of SHOWN."""
    every = max(1, len(starts) // TABLE_ROWS)
    picked = list(zip(starts, counts, strict=True))[::-1][::every][::-1]
    return [(start, [count[state] for state in SHOWN]) for start, count in picked]
