"""How readings are named in a Prometheus-compatible store: pure.

rackrent_gpu_<reading>{gpu, machine, reading} and rackrent_host_<reading>{machine, reading}; ids are ours. `reading` repeats the name because functions over time
drop names: with it, one query answers for any number of readings. A state is a series of its own whose value is its code, so that counting samples gives
the time in each state exactly. Bits have a series each, at most one a bit: "every bit that was set" is no function of PromQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any

from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS, READINGS_FROM
from fleet.telemetry.rollups.columns import BITS
from fleet.telemetry.state_codes import STATES_BY_CODE
from fleet.telemetry.store.remote_write import Label, encode_series

PREFIX = "rackrent"
STATE, BIT = "state", "throttle_bit"
MAX_BIT = 63


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a GPU (`gpu_id`) or of a machine itself (None), at `moment` in milliseconds since the epoch."""

    machine_id: int
    gpu_id: int | None
    moment: int
    row: tuple[Any, ...]

    @property
    def values(self) -> int:
        return sum(value is not None for value in self.row[READINGS_FROM:]) + (self.gpu_id is not None)


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


def encoded(points: Iterable[Point]) -> list[bytes]:
    """The series of these points, encoded; each series' samples ascend."""
    ordered = sorted(points, key=lambda point: (point.gpu_id is None, point.machine_id, point.gpu_id, point.moment))
    owners = groupby(ordered, key=lambda point: (point.machine_id, point.gpu_id))
    return [series for owner, group in owners for series in _series_of(*owner, list(group))]


def _series_of(machine_id: int, gpu_id: int | None, points: Sequence[Point]) -> Iterator[bytes]:
    """Column by column: putting each of a group's fifty thousand values where it belongs would cost as much as encoding it."""
    kind, columns = ("host", HOST_COLUMNS) if gpu_id is None else ("gpu", GPU_COLUMNS)
    owner = [*([("gpu", str(gpu_id))] if gpu_id is not None else ()), ("machine", str(machine_id))]
    moments = [point.moment for point in points]
    values = zip(*(point.row[READINGS_FROM:] for point in points), strict=True)
    for name, column in zip(columns, values, strict=True):
        known = [pair for pair in zip(moments, column, strict=True) if pair[1] is not None]
        if known:
            yield encode_series([("__name__", f"{PREFIX}_{kind}_{name}"), *owner, ("reading", name)], known)
        if name == BITS:
            yield from _bits_of(owner, known)
    if gpu_id is not None:
        yield from _states_of(owner, [(point.moment, point.row[2]) for point in points if point.row[2] is not None])


def _bits_of(owner: Sequence[Label], known: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    every = reduce(or_, (mask for _, mask in known), 0)
    for bit in range(MAX_BIT + 1):
        if every >> bit & 1:
            labels = [("__name__", f"{PREFIX}_gpu_{BIT}"), ("bit", str(bit)), *owner, ("reading", BIT)]
            yield encode_series(labels, [(moment, 1.0) for moment, mask in known if mask >> bit & 1])


def _states_of(owner: Sequence[Label], codes: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    for code in sorted({code for _, code in codes}):
        state = STATES_BY_CODE[code].value
        labels = [("__name__", f"{PREFIX}_gpu_{STATE}"), *owner, ("reading", STATE), ("state", state)]
        yield encode_series(labels, [pair for pair in codes if pair[1] == code])
