"""Which exporter's names mean what. One file per exporter: NAMES that it reads, and a pure function from a page to readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fleet.telemetry.scrape.dialects import dcgm, node, nvidia_gpu
from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import Page
from fleet.telemetry.scrape.readings import Scraped, UnusableError

Read = Callable[[Page, History, Scraped, Counter[str]], None]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`read(page, history, scraped, dropped)` adds to `scraped`. `marks`: one of these names tells its exporter."""

    names: frozenset[str]
    marks: frozenset[str]
    read: Read


DCGM = Dialect(dcgm.NAMES, dcgm.MARKS, dcgm.read)
NODE = Dialect(node.NAMES, node.MARKS, node.read)
NVIDIA_GPU = Dialect(nvidia_gpu.NAMES, nvidia_gpu.MARKS, nvidia_gpu.read)

# Our own agent serves DCGM's names for GPUs and node_exporter's for the host. Of two that give GPUs, the first is taken.
KINDS: Mapping[str, tuple[Dialect, ...]] = MappingProxyType(
    {
        "auto": (DCGM, NVIDIA_GPU, NODE),
        "agent": (DCGM, NODE),
        "dcgm": (DCGM,),
        "node": (NODE,),
        "nvidia_gpu": (NVIDIA_GPU,),
    }
)
WANTED: Mapping[str, frozenset[str]] = MappingProxyType(
    {kind: frozenset().union(*(dialect.names for dialect in dialects)) for kind, dialects in KINDS.items()}
)


def read_page(page: Page, *, kind: str, history: History, dropped: Counter[str]) -> Scraped:
    """Raises UnusableError for a page on which no exporter of that kind can be recognised, and where none of them could be read."""
    scraped = Scraped()
    spoken = [dialect for dialect in KINDS[kind] if any(name in page for name in dialect.marks)]
    if DCGM in spoken and NVIDIA_GPU in spoken:
        spoken.remove(NVIDIA_GPU)
    problems = []
    for dialect in spoken:
        try:
            dialect.read(page, history, scraped, dropped)
        except UnusableError as error:
            problems.append(error)
    if len(problems) == len(spoken):
        raise problems[0] if problems else UnusableError("not_metrics")
    # What the other exporter of the page says is good all the same.
    scraped.problem = problems[0] if problems else None
    return scraped
