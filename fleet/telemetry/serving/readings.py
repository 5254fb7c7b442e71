"""From a batch to rows of serving endpoints: pure, no database and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from fleet.telemetry.sanitise import clean
from fleet.telemetry.serving.columns import COLUMNS
from fleet.telemetry.wire import Batch, Sample, ServingWire

# Engine, model, port: what one endpoint of a machine is known by.
Endpoint = tuple[str, str, int]
Row = tuple[Any, ...]

_values = attrgetter(*COLUMNS)
# What an endpoint with nothing to do has none of.
_REQUESTS = attrgetter(
    "requests_running", "requests_waiting", "requests_finished", "prompt_tokens", "generation_tokens"
)


def endpoint_of(reading: ServingWire) -> Endpoint:
    return reading.engine, clean(reading.model), reading.port


def endpoints_of(batch: Batch) -> set[Endpoint]:
    return {endpoint_of(reading) for sample in batch.samples or () for reading in sample.serving or ()}


def rows_of(
    sample: Sample, at: float, ids: Mapping[Endpoint, int], dropped: Counter[str]
) -> Iterator[tuple[Row, bool]]:
    """Each reading as a row (endpoint id, moment, readings), and whether it shows a request.

    An endpoint that nobody knows is one too many: its reading is counted in `dropped["serving"]`.
    """
    for reading in sample.serving or ():
        endpoint_id = ids.get(endpoint_of(reading))
        if endpoint_id is None:
            dropped["serving"] += 1
        else:
            yield (endpoint_id, at, *_values(reading)), any(_REQUESTS(reading))


def newest(rows: Iterable[Row], *, received_at: float) -> list[Row]:
    """The last of each endpoint's rows, in the order of LATEST and of their ids."""
    last: dict[int, Row] = {}
    for row in rows:
        if row[0] not in last or row[1] > last[row[0]][1]:
            last[row[0]] = row
    return [(pk, row[1], received_at, *row[2:]) for pk, row in sorted(last.items())]
