"""Reads recorded five minutes of many machines, whichever engine keeps the readings: one bucket after the other, never all at once in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from msgspec.structs import replace

from fleet.idle.dryrun.evidence import Bucket
from fleet.idle.dryrun.statements import BUCKETS
from fleet.idle.watch.highest import GPU_READINGS, HOST_COUNTS, HOST_RATES, both
from fleet.states import DEFAULTS
from fleet.telemetry.rollups.columns import FIVE_MINUTES
from fleet.telemetry.spans import Span
from fleet.telemetry.store import current_store
from fleet.telemetry.store.base import GPUS, HOSTS, Asked, Source, Statistic

AT_ONCE = 5_000
# What a store of readings is asked for at once: so many GPUs, over so many days.
GPUS_AT_ONCE = 32
DAYS_AT_ONCE = timedelta(days=7)
GPU_FIELDS = (*GPU_READINGS, "memory_used_bytes")
Peaks = dict[tuple[int, datetime], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU to read. `is_cut`: into MIG instances, which tell what it does. `floor_watts`: what it draws at rest, `held_watts`: with memory held."""

    gpu_id: int
    instance_id: int
    floor_watts: float | None = None
    held_watts: float | None = None
    is_cut: bool = False

    def rest_watts(self, memory_bytes: float | None) -> float | None:
        is_held = memory_bytes is not None and memory_bytes >= DEFAULTS.held_memory_bytes
        return self.held_watts if is_held else self.floor_watts


@dataclass(frozen=True, slots=True)
class Range:
    since: datetime
    until: datetime

    def parts(self) -> Iterator[Range]:
        start = self.since
        while start < self.until:
            end = min(start + DAYS_AT_ONCE, self.until)
            yield Range(start, end)
            start = end


def buckets_of(cards: Sequence[Card], span: Range) -> Iterator[Bucket]:
    """Machine by machine in the order of their ids, each in the order of time. Runs in a transaction until it is read to its end.

    One query, and where a store keeps the readings, its questions, which grow with what they are about.
    """
    rows = (Bucket(*row) for row in _rows(cards, span))
    if current_store().reads(FIVE_MINUTES) == FIVE_MINUTES:
        yield from rows
    else:
        yield from Overlay(cards, span).over(rows)


def _rows(cards: Sequence[Card], span: Range) -> Iterator[tuple[Any, ...]]:
    given: dict[str, Any] = {
        "gpu_ids": [card.gpu_id for card in cards],
        "machines": [card.instance_id for card in cards],
        "floors": [card.floor_watts for card in cards],
        "held": [card.held_watts for card in cards],
        "held_bytes": DEFAULTS.held_memory_bytes,
        "cut": [card.is_cut for card in cards],
        "instance_ids": sorted({card.instance_id for card in cards}),
        "since": span.since,
        "until": span.until,
    }
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(BUCKETS, given)
        while rows := cursor.fetchmany(AT_ONCE):
            yield from rows


@dataclass(slots=True)
class Overlay:
    """Peaks out of a store of readings, laid over rows of which the database knows only how much was read."""

    cards: Sequence[Card]
    span: Range
    waiting: list[list[Card]] = field(default_factory=list)
    peaks: Peaks = field(default_factory=dict)
    reached: int = -1

    def over(self, rows: Iterator[Bucket]) -> Iterator[Bucket]:
        self.waiting = groups_of(self.cards)
        for row in rows:
            while row.instance_id > self.reached and self.waiting:
                group = self.waiting.pop(0)
                self.peaks, self.reached = peaks_of(group, self.span), group[-1].instance_id
            told = self.peaks.get((row.instance_id, row.at), {})
            # A machine and its GPUs come in one report: what was read of it was read as they were.
            host_coverage = row.coverage if "cpu_percent" in told else None
            yield replace(row, **told, host_coverage=host_coverage)


def groups_of(cards: Sequence[Card]) -> list[list[Card]]:
    """Whole machines, some together."""
    machines: dict[int, list[Card]] = defaultdict(list)
    for card in sorted(cards, key=lambda card: card.instance_id):
        machines[card.instance_id].append(card)
    found: list[list[Card]] = []
    for group in machines.values():
        if found and len(found[-1]) + len(group) <= GPUS_AT_ONCE:
            found[-1] += group
        else:
            found.append(list(group))
    return found


def peaks_of(cards: Sequence[Card], span: Range) -> Peaks:
    """By machine and bucket, as columns of Bucket."""
    found: Peaks = {}
    for part in span.parts():
        _add_gpus(found, {card.gpu_id: card for card in cards}, part)
        _add_hosts(found, sorted({card.instance_id for card in cards}), part)
    return found


def _asked(
    source: Source, ids: Sequence[int], fields: Sequence[str], part: Range, statistic: Statistic = "max"
) -> Iterator[tuple[int, datetime, dict[str, Any]]]:
    span = Span(part.since, part.until, FIVE_MINUTES.seconds, FIVE_MINUTES)
    for pk, number, *figures in current_store().figures(Asked(source, ids, fields, statistic), span):
        at = datetime.fromtimestamp(number * FIVE_MINUTES.seconds, UTC)
        yield pk, at, dict(zip(fields, figures, strict=True))


def _add_gpus(found: Peaks, cards: Mapping[int, Card], part: Range) -> None:
    read: dict[tuple[int, datetime], int] = defaultdict(int)
    for pk, at, told in _asked(GPUS, list(cards), GPU_FIELDS, part):
        card = cards[pk]
        here = found.setdefault((card.instance_id, at), {})
        power, floor = told.pop("power_watts"), card.rest_watts(told.pop("memory_used_bytes"))
        told["power_ratio"] = power / floor if floor and power is not None else None
        for name, value in told.items():
            if value is not None:
                here[name] = max(value, here.get(name, value))
        if not card.is_cut and (told["utilization_percent"] is not None or told["sm_activity"] is not None):
            read[card.instance_id, at] += 1
    judged = Counter(card.instance_id for card in cards.values() if not card.is_cut)
    for (machine, at), count in read.items():
        found[machine, at]["unread"] = judged[machine] - count


def _add_hosts(found: Peaks, instance_ids: Sequence[int], part: Range) -> None:
    for pk, at, told in _asked(HOSTS, instance_ids, HOST_RATES, part, "p95"):
        found.setdefault((pk, at), {}).update(
            cpu_percent=told["cpu_percent"],
            disk_bytes_per_second=both(told["disk_read_bytes_per_second"], told["disk_write_bytes_per_second"]),
            network_bytes_per_second=both(told["network_rx_bytes_per_second"], told["network_tx_bytes_per_second"]),
        )
    for pk, at, told in _asked(HOSTS, instance_ids, HOST_COUNTS, part):
        counts = {"ssh_sessions": told["ssh_sessions"], "busy_kernels": told["jupyter_busy_kernels"]}
        found.setdefault((pk, at), {}).update(counts)
