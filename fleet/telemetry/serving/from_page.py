"""From an engine's page of metrics to readings of its models: gauges as they are, counters and histograms as growth since the last page. Pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.telemetry.sanitise import clean
from fleet.telemetry.scrape.page import Page, Point, parse_page
from fleet.telemetry.scrape.readings import to_wire
from fleet.telemetry.serving.engines import ENGINES, RATIOS, WANTED, Engine, Series
from fleet.telemetry.wire import ServingWire

MOST_MODELS = 16
# Of one model; an engine has some 80. What is kept until the next page is bounded by it.
MOST_COUNTERS = 400
# Longer ago than this, growth says nothing of now.
LONGEST_SECONDS = 120.0
QUANTILES = (("p50", 0.5), ("p95", 0.95))

# Of one model: "requests_finished", "ttft sum", "ttft count" or "ttft le 0.5", each with what it stands at.
Counters = dict[str, float]


def read_page(
    text: str, *, port: int, memory: Mapping[str, Any], at: float
) -> tuple[list[ServingWire], dict[str, Any]]:
    """The readings of the page's models, and what to hand in as `memory` with the next page. `at`: epoch seconds.

    Raises NotMetricsError and UnusableError. Without a name that an engine has there are no readings.
    """
    page = parse_page(text, WANTED)
    seconds = at - float(memory.get("at", at))
    before = memory.get("counters", {}) if 0 < seconds <= LONGEST_SECONDS else None
    readings, kept = [], dict[str, Counters]()
    for name, engine in ENGINES.items():
        for model in sorted(_models(engine, page))[:MOST_MODELS]:
            own = _of_model(engine, model, page)
            values: dict[str, Any] = dict(_gauges(engine, own))
            counters = kept[f"{name} {model}"] = dict(itertools.islice(_counters(engine, own), MOST_COUNTERS))
            if before is not None:
                values |= _grown(counters, before.get(f"{name} {model}", {}), seconds)
            if values or counters:
                reading = {"engine": name, "model": clean(model)[:200], "port": port, **values}
                readings.append(to_wire(ServingWire, reading, Counter()))
    return readings[:MOST_MODELS], {"at": at, "counters": kept}


def _models(engine: Engine, page: Page) -> set[str]:
    return {labels.get(engine.model_label, "") for name in engine.names for labels, _value in page.points(name)}


def _of_model(engine: Engine, model: str, page: Page) -> dict[str, list[Point]]:
    own = {
        name: [point for point in page.points(name) if point[0].get(engine.model_label, "") == model]
        for name in engine.names
    }
    return {name: points for name, points in own.items() if points}


def _picked(series: Series, own: Mapping[str, list[Point]]) -> list[float]:
    name, label, values = series[0], "".join(series[1:2]), series[2:]
    points = own.get(name, ())
    return [value for labels, value in points if (not label or labels.get(label) in values) and 0 <= value < math.inf]


def _gauges(engine: Engine, own: Mapping[str, list[Point]]) -> Iterator[tuple[str, float]]:
    for field, candidates in engine.gauges.items():
        values = next((found for one in candidates if (found := _picked(one, own))), [])
        if values:
            yield field, sum(values) / (len(values) if field in RATIOS else 1)


def _counters(engine: Engine, own: Mapping[str, list[Point]]) -> Iterator[tuple[str, float]]:
    for field, parts in engine.counters.items():
        # A reason that nothing has ended for yet has no series: it stands at 0 where its family is there.
        if any(one[0] in own for one in parts):
            yield field, sum(sum(_picked(one, own)) for one in parts)
    for field, (spent, count, factor) in engine.spent.items():
        if spent in own and count in own:
            yield f"{field} sum", factor * sum(_picked((spent,), own))
            yield f"{field} count", sum(_picked((count,), own))
    for field, histograms in engine.latencies.items():
        name, factor = next((one for one in histograms if f"{one[0]}_sum" in own and f"{one[0]}_count" in own), ("", 1))
        if name:
            yield f"{field} sum", factor * sum(_picked((f"{name}_sum",), own))
            yield f"{field} count", sum(_picked((f"{name}_count",), own))
            yield from _buckets(field, factor, own.get(f"{name}_bucket", []))


def _buckets(field: str, factor: float, points: list[Point]) -> Iterator[tuple[str, float]]:
    """Several engines of one model have the same bounds, and are added up."""
    found: Counters = {}
    for labels, value in points:
        try:
            bound = factor * float(labels.get("le", ""))
        except ValueError:
            continue
        if bound == bound and 0 <= value < math.inf:  # noqa: PLR0124 - NaN
            found[f"{field} le {bound!r}"] = found.get(f"{field} le {bound!r}", 0.0) + value
    yield from found.items()


def _grown(counters: Counters, before: Counters, seconds: float) -> dict[str, Any]:
    """Empty after a reset: the engine was started anew, and nobody knows what happened in between.

    A counter that was not on the last page stood at 0: engines make a series when they first count.
    """
    deltas = {key: value - before.get(key, 0.0) for key, value in counters.items()}
    if not deltas or min(deltas.values()) < 0 or not set(before) <= set(counters):
        return {}
    grown: dict[str, Any] = {"interval_seconds": seconds}
    for key, delta in deltas.items():
        field, _, part = key.partition(" ")
        if part == "sum":
            grown[f"{field}_seconds_sum"] = delta
        elif not part or part == "count":
            grown[f"{field}_count" if part else field] = round(delta)
    return grown | dict(_quantiles(deltas))


def _quantiles(deltas: Counters) -> Iterator[tuple[str, float]]:
    buckets: dict[str, list[tuple[float, float]]] = {}
    for key, delta in deltas.items():
        field, _, bound = key.partition(" le ")
        if bound:
            buckets.setdefault(field, []).append((float(bound), delta))
    for field, counted in buckets.items():
        for name, share in QUANTILES:
            if (value := quantile(sorted(counted), share)) is not None:
                yield f"{field}_seconds_{name}", value


def quantile(buckets: list[tuple[float, float]], share: float) -> float | None:
    """Of cumulative buckets (upper bound, how many at or below it), straight lines inside each, as Prometheus's histogram_quantile does it.

    None without observations. Above the last finite bound nothing is known but that: the bound itself is given.
    """
    rank = share * buckets[-1][1] if buckets else 0.0
    if rank <= 0:
        return None
    low, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return low if math.isinf(bound) else low + (bound - low) * (rank - below) / max(count - below, 1e-12)
        low, below = bound, count
    return low
