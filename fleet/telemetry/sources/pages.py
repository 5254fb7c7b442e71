"""Samples of a Prometheus put together again as the pages they were scraped from: pure.

All series of one scrape have its moment, so that the samples of one target and moment are what its exporter said then. They go through
the same dialects as a page that is read directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import isinf
from typing import Any

import msgspec

from fleet.telemetry.sanitise import clean
from fleet.telemetry.scrape.dialects import DCGM, KINDS, NODE, NVIDIA_GPU, read_page
from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import Page
from fleet.telemetry.scrape.readings import Scraped, UnusableError
from fleet.telemetry.wire import LONGEST_INTERVAL_SECONDS, Event, InventoryRow, Sample

NAMES = frozenset().union(*(dialect.names for dialect in KINDS["auto"]))
GPU_NAMES = DCGM.names | NVIDIA_GPU.names
# Spellings of the label that names the machine, tried in this order where the chosen one is missing.
FALLBACKS = ("Hostname", "hostname", "node", "instance")
# Counters this far apart give no rate.
LONGEST_SECONDS = 180.0
HOST_NAMES = NODE.names

Target = tuple[str, str]


class Series(msgspec.Struct):
    """As a question for samples is answered: moments in epoch seconds, each with its value as text."""

    metric: dict[str, str]
    values: list[tuple[float, str]]


@dataclass(slots=True)
class MachinePages:
    """What one machine's exporters said: target -> moment -> page."""

    targets: dict[Target, dict[float, Page]] = field(default_factory=dict)


@dataclass(slots=True)
class MachineReadings:
    """`samples` ascend and are newer than what was asked for; `inventory` is that of the newest GPU page, None without one."""

    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    inventory: list[InventoryRow] | None = None
    sample_seconds: int = 0
    problem: UnusableError | None = None
    dropped: Counter[str] = field(default_factory=Counter)

    def stand_for(self, seconds: int) -> None:
        for sample in self.samples:
            sample.interval_seconds = seconds if 0 < seconds <= LONGEST_INTERVAL_SECONDS else None


def machine_of(labels: Mapping[str, str], *, chosen: str) -> str:
    """The value that names the machine, without a port."""
    value = next((labels[name] for name in (chosen, *FALLBACKS) if labels.get(name)), "")
    host, colon, port = value.rpartition(":")
    return clean(host.strip("[]") if colon and port.isdecimal() else value, 200)


def pages_of(series: Iterable[Series], *, gpu_label: str, host_label: str) -> dict[str, MachinePages]:
    """Values that are no numbers are left out."""
    machines: dict[str, MachinePages] = {}
    for one in series:
        labels = dict(one.metric)
        name = labels.pop("__name__", "")
        machine = machine_of(labels, chosen=gpu_label if name in GPU_NAMES else host_label)
        if name not in NAMES or not machine:
            continue
        target = (labels.get("job", ""), labels.get("instance", ""))
        pages = machines.setdefault(machine, MachinePages()).targets.setdefault(target, {})
        for moment, text in one.values:
            if (value := _number(text)) is not None:
                page = pages.setdefault(moment, Page())
                page.series.setdefault(name, []).append((labels, value))
    return machines


def _number(text: str) -> float | None:
    """NaN is one: a series that ended says so."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isinf(number) else number


def readings_of(machine: MachinePages, *, after: float) -> MachineReadings:
    """Pages up to `after` only say what counters stood at before."""
    found = MachineReadings()
    spacings: list[int] = []
    for _target, pages in sorted(machine.targets.items()):
        moments = sorted(pages)
        spacings += [round(later - sooner) for sooner, later in pairwise(moments)]
        for moment, scraped in _scraped(pages, moments, found):
            if moment > after:
                _take(found, moment, scraped)
    found.samples.sort(key=lambda sample: sample.at)
    found.sample_seconds = Counter(spacings).most_common(1)[0][0] if spacings else 0
    return found


def _scraped(
    pages: Mapping[float, Page], moments: Iterable[float], found: MachineReadings
) -> Iterator[tuple[float, Scraped]]:
    memory: dict[str, Any] = {}
    for moment in moments:
        history = History(memory, at=moment, longest_seconds=LONGEST_SECONDS)
        try:
            scraped = read_page(pages[moment], kind="auto", history=history, dropped=found.dropped)
        except UnusableError as error:
            found.problem = error
            continue
        memory = history.to_json()
        yield moment, scraped


def _take(found: MachineReadings, moment: float, scraped: Scraped) -> None:
    if scraped.gpus is not None or scraped.host is not None:
        found.samples.append(Sample(at=moment, host=scraped.host, gpus=scraped.gpus))
    found.events += scraped.events
    if scraped.inventory is not None:
        found.inventory = scraped.inventory
