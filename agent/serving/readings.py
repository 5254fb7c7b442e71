"""From a page to what the protocol calls ``serving``: gauges as they are, counters and histograms as growth since the last page."""

from __future__ import annotations

import math

from agent.serving.engines import ENGINES, RATIOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.serving.engines import Engine, Latency, Pick
    from agent.serving.page import Series

    # The model's name, or "" where the engine does not say it
    Counters = dict[tuple[str, ...], float]

_MOST_MODELS = 16
# Longer ago than this, growth says nothing of now
_LONGEST_SECONDS = 120.0
_QUANTILES = (("p50", 0.5), ("p95", 0.95))


class Reading:
    """One model on one page. ``counters``: (field,), or (latency, "sum" or "count"), or (latency, "bucket", upper bound)."""

    __slots__ = ("counters", "engine", "gauges", "model")

    def __init__(self, engine: str, model: str, gauges: dict[str, float], counters: Counters) -> None:
        self.engine = engine
        self.model = model
        self.gauges = gauges
        self.counters = counters


def read_models(series: Series) -> list[Reading]:
    """One for each model of each engine on the page, at most 16."""
    found = []
    for engine in ENGINES:
        own = {name: rows for name, rows in series.items() if name.startswith(engine.prefixes)}
        for model in sorted(_models(engine, own))[:_MOST_MODELS]:
            of_model = {
                name: [row for row in rows if row[0].get(engine.model_label, "") == model] for name, rows in own.items()
            }
            found.append(_reading(engine, model, of_model))
    return [reading for reading in found if reading.gauges or reading.counters][:_MOST_MODELS]


def _models(engine: Engine, series: Series) -> set[str]:
    return {labels.get(engine.model_label, "") for rows in series.values() for labels, _ in rows}


def _reading(engine: Engine, model: str, series: Series) -> Reading:
    gauges = {}
    for field, picks in engine.gauges.items():
        values = next((found for pick in picks if (found := _picked(pick, series))), [])
        if values:
            gauges[field] = sum(values) / (len(values) if field in RATIOS else 1)
    counters: Counters = {}
    for field, picks in engine.counters.items():
        # A reason that nothing has ended for yet has no series: it is 0 where its family is there
        if any(series.get(pick.name) for pick in picks):
            counters[(field,)] = sum(sum(_picked(pick, series)) for pick in picks)
    for field, candidates in engine.latencies.items():
        counters.update(_latency(field, candidates, series))
    return Reading(engine.name, model, gauges, counters)


def _picked(pick: Pick, series: Series) -> list[float]:
    rows = series.get(pick.name, ())
    return [value for labels, value in rows if pick.takes(labels) and math.isfinite(value) and value >= 0]


def _latency(field: str, candidates: tuple[Latency, ...], series: Series) -> Counters:
    latency = next((one for one in candidates if series.get(one.total) and series.get(one.count)), None)
    if latency is None:
        return {}
    counters: Counters = {
        (field, "sum"): latency.factor * sum(value for _, value in series[latency.total]),
        (field, "count"): sum(value for _, value in series[latency.count]),
    }
    for labels, value in series.get(latency.bucket, ()) if latency.bucket else ():
        key = (field, "bucket", repr(latency.factor * _bound(labels.get("le", ""))))
        counters[key] = counters.get(key, 0.0) + value
    return {key: value for key, value in counters.items() if math.isfinite(value) and "nan" not in key}


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


class Growth:
    """Remembers what the counters of each page stood at, on the caller's monotonic clock."""

    def __init__(self) -> None:
        self._pages: dict[str, tuple[float, dict[tuple[str, str], Counters]]] = {}

    def rows(self, page: str, now: float, readings: list[Reading]) -> list[dict[str, object]]:
        """Protocol rows. What counters grew by is absent at the first page, after a reset and after a long silence."""
        last = self._pages.get(page)
        self._pages[page] = (now, {(one.engine, one.model): one.counters for one in readings})
        seconds = now - last[0] if last else 0.0
        rows = []
        for one in readings:
            row: dict[str, object] = {"engine": one.engine, "model": one.model, **one.gauges}
            if last and 0 < seconds <= _LONGEST_SECONDS:
                # A counter that was not on the last page stood at 0: engines make a series when they first count
                row.update(_grown(one.counters, last[1].get((one.engine, one.model), {}), seconds))
            rows.append(row)
        return rows

    def forget(self, page: str) -> None:
        self._pages.pop(page, None)


def _grown(counters: Counters, before: Counters, seconds: float) -> dict[str, object]:
    """Empty after a reset: the engine was started anew, and nobody knows what happened in between."""
    deltas = {key: value - before.get(key, 0.0) for key, value in counters.items()}
    if not deltas or any(delta < 0 for delta in deltas.values()) or any(key not in counters for key in before):
        return {}
    grown: dict[str, object] = {"interval_seconds": seconds}
    for key, delta in deltas.items():
        if len(key) == 1:
            grown[key[0]] = round(delta)
        elif key[1] == "sum":
            grown[f"{key[0]}_seconds_sum"] = delta
        elif key[1] == "count":
            grown[f"{key[0]}_count"] = round(delta)
    return {**grown, **dict(_quantiles(deltas))}


def _quantiles(deltas: Counters) -> Iterator[tuple[str, float]]:
    for field in sorted({key[0] for key in deltas if key[1:2] == ("bucket",)}):
        buckets = sorted((float(key[2]), delta) for key, delta in deltas.items() if key[:2] == (field, "bucket"))
        for name, share in _QUANTILES:
            value = quantile(buckets, share)
            if value is not None:
                yield f"{field}_seconds_{name}", value


def quantile(buckets: list[tuple[float, float]], share: float) -> float | None:
    """Of cumulative buckets (upper bound, count at or below it), straight lines inside each, as Prometheus does it.

    None without observations. Above the last finite bound nothing is known but that: the bound itself is given.
    """
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    rank, low, below = share * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if math.isinf(bound):
                return low
            return low + (bound - low) * (rank - below) / (count - below) if count > below else bound
        low, below = bound, count
    return low
