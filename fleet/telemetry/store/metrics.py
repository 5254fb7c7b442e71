"""How readings are named in a Prometheus-compatible store: pure.

rackrent_gpu_<reading>{gpu, machine, reading} and rackrent_host_<reading>{machine, reading}; ids are ours. `reading` repeats the name because functions over time
drop names: with it, one query answers for any number of readings. A state is a series of its own whose value is its code, so that counting samples gives
the time in each state exactly. Bits have a series each, at most one a bit: "every bit that was set" is no function of PromQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS
from fleet.telemetry.rollups.columns import BITS
from fleet.telemetry.state_codes import STATES_BY_CODE
from fleet.telemetry.store.remote_write import Labels, encode_series

PREFIX = "rackrent"
STATE, BIT = "state", "throttle_bit"
MAX_BIT = 63
# GPU rows: id, moment, state, readings; host rows: id, moment, devices, readings (ingest.statements).
_READINGS_FROM = 3


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a GPU (`gpu_id`) or of a machine itself (None), at `moment` in milliseconds since the epoch."""

    machine_id: int
    gpu_id: int | None
    moment: int
    row: tuple[Any, ...]

    @property
    def values(self) -> int:
        return sum(value is not None for value in self.row[_READINGS_FROM:]) + (self.gpu_id is not None)


def points_of(
    gpus: Iterable[tuple[Any, ...]], hosts: Iterable[tuple[Any, ...]], machines: Mapping[int, int]
) -> list[Point]:
    """One a GPU or machine and moment, by GPU, machine and time: a batch that came twice is in it once."""
    found = {(row[0], moment): Point(machines[row[0]], row[0], moment, row) for row in gpus for moment in [_ms(row)]}
    own = {(row[0], moment): Point(row[0], None, moment, row) for row in hosts for moment in [_ms(row)]}
    return [found[key] for key in sorted(found)] + [own[key] for key in sorted(own)]


def _ms(row: tuple[Any, ...]) -> int:
    seconds: float = row[1]
    return round(seconds * 1000)


def encoded(points: Sequence[Point]) -> list[bytes]:
    """The series of these points, encoded; each series' samples ascend."""
    series: dict[tuple[int, int | None, str, str], list[tuple[int, float]]] = {}
    for point in points:
        for name, mark, value in _readings(point):
            series.setdefault((point.machine_id, point.gpu_id, name, mark), []).append((point.moment, value))
    return [encode_series(_labels(*key), sorted(samples)) for key, samples in series.items()]


def _readings(point: Point) -> Iterator[tuple[str, str, float]]:
    """(reading, which state or bit, value)"""
    columns = HOST_COLUMNS if point.gpu_id is None else GPU_COLUMNS
    for name, value in zip(columns, point.row[_READINGS_FROM:], strict=True):
        if value is not None:
            yield name, "", float(value)
            if name == BITS:
                yield from ((BIT, str(bit), 1.0) for bit in range(MAX_BIT + 1) if value >> bit & 1)
    if point.gpu_id is not None and (code := point.row[2]) is not None:
        yield STATE, STATES_BY_CODE[code].value, float(code)


def _labels(machine_id: int, gpu_id: int | None, name: str, mark: str) -> Labels:
    kind = "host" if gpu_id is None else "gpu"
    labels = [("__name__", f"{PREFIX}_{kind}_{name}"), ("machine", str(machine_id)), ("reading", name)]
    if gpu_id is not None:
        labels.append(("gpu", str(gpu_id)))
    if mark:
        labels.append(("state" if name == STATE else "bit", mark))
    return tuple(labels)
