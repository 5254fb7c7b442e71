"""Samples of a Prometheus put together again as the pages they were scraped from: pure.

All series of one scrape have its moment, so that the samples of one target and moment are what its exporter said then. They go through
the same dialects as a page that is read directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fleet.telemetry.scrape.dialects import DCGM, KINDS, NODE, NVIDIA_GPU, read_page
from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import Page
from fleet.telemetry.scrape.readings import Scraped, UnusableError
from fleet.telemetry.sources.ask import Series
from fleet.telemetry.wire import LONGEST_INTERVAL_SECONDS, Event, InventoryRow, Sample

NAMES = frozenset().union(*(dialect.names for dialect in KINDS["auto"]))
GPU_NAMES = DCGM.names | NVIDIA_GPU.names
# Spellings of the label that names the machine, tried in this order where the chosen one is missing.
FALLBACKS = ("Hostname", "hostname", "node", "instance")
# Counters this far apart give no rate.
LONGEST_SECONDS = 180.0
HOST_NAMES = NODE.names

Target = tuple[str, str]


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
    return host.strip("[]") if colon and port.isdecimal() else value


def pages_of(series: Iterable[Series], *, gpu_label: str, host_label: str) -> dict[str, MachinePages]:
    """series: as an instant query for a range answers, {"metric": labels, "values": [[seconds, text], …]}."""
    machines: dict[str, MachinePages] = {}
    for one in series:
        labels = dict(one["metric"])
        name = labels.pop("__name__", "")
        machine = machine_of(labels, chosen=gpu_label if name in GPU_NAMES else host_label)
        if name not in NAMES or not machine:
            continue
        target = (labels.get("job", ""), labels.get("instance", ""))
        pages = machines.setdefault(machine[:200], MachinePages()).targets.setdefault(target, {})
        for moment, text in one["values"]:
            page = pages.setdefault(float(moment), Page())
            page.series.setdefault(name, []).append((labels, float(text)))
    return machines


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
