"""Registries that pages are composed from. A slice registers what it shows when the app is ready; pages know no slice.

Every entry is a callable that takes the request (and what the page is about) and returns a context, so that a page
makes no query for a panel it does not draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

Context = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a page: the template that draws it and the function that fills it (None = nothing to show)."""

    name: str
    template: str
    context: Callable[..., Context | None]
    order: int = 100


@dataclass(frozen=True, slots=True)
class NavItem:
    """An entry of the rail. `url_name` takes the team's slug; `icon` names a symbol of templates/components/icons."""

    name: str
    label: Any
    url_name: str
    icon: str
    order: int = 100
    # Under 640 px only four entries fit; the rest lie behind "More".
    far: bool = False
    # The lowest role that sees the entry: viewer, operator or admin. The view behind it checks for itself.
    role: str = "viewer"
    # count(request): how many wait behind it; drawn as a badge where it is not 0.
    count: Callable[..., int] | None = None
    # What is counted, for those who hear the page; without it they are "open".
    count_words: Callable[[int], str] | None = None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One moment of a machine. `text` and `detail` are translated and plain: the page escapes them.

    `mark`: a GpuState, a severity (urgent, warning, note), or "" for a plain dot. `machine`: its name, on pages about many.
    """

    at: datetime
    text: str
    detail: str = ""
    mark: str = ""
    machine: str = ""
    instance_id: int | None = None
    # The source that told it; set where the sources are put together.
    kind: str = ""


@dataclass
class Registry(Generic[T]):
    """Ordered by `order`, then by registration; a name taken twice is a programming error."""

    entries: dict[str, T] = field(default_factory=dict)

    def register(self, entry: T) -> T:
        name = entry.name  # type: ignore[attr-defined]
        if name in self.entries:
            raise ValueError(f"{name!r} is registered already")
        self.entries[name] = entry
        return entry

    def __iter__(self) -> Iterator[T]:
        return iter(sorted(self.entries.values(), key=lambda entry: entry.order))  # type: ignore[attr-defined]


navigation: Registry[NavItem] = Registry()
# Tabs of /t/<team>/settings/: their pages extend settings/base.html, fill its block `panel` and set `tab` to the entry's name.
settings_tabs: Registry[NavItem] = Registry()
# Tabs of /t/<team>/costs/: their pages extend costs/base.html, fill its block `panel` and set `tab` to the entry's name.
costs_tabs: Registry[NavItem] = Registry()
# Sections of the page of costs: context(request, month: fleet.costs.month.Month).
costs_panels: Registry[Panel] = Registry()
# Tabs of /t/<team>/idle/: their pages extend idle/base.html, fill its block `panel` and set `tab` to the entry's name.
idle_tabs: Registry[NavItem] = Registry()
# Sections of the page of what is idle: context(request).
idle_panels: Registry[Panel] = Registry()
# Sections of the page of lists of offers and ratings: context(request).
offer_panels: Registry[Panel] = Registry()
strip_figures: Registry[Panel] = Registry()
overview_panels: Registry[Panel] = Registry()
machine_panels: Registry[Panel] = Registry()
# Beside the inbox of alerts.
inbox_panels: Registry[Panel] = Registry()
# context(request, instance, since, until) -> {"entries": [TimelineEntry, …]}, of [since, until). instance None: the team's
# newest, at most TIMELINE_LIMIT; of one machine at most MACHINE_TIMELINE_LIMIT. The template of the panel is not used; the page draws all sources as one list.
TIMELINE_LIMIT = 20
# Of one machine, where a month of it is read.
MACHINE_TIMELINE_LIMIT = 200
timeline_sources: Registry[Panel] = Registry()


def timeline_limit(instance: object | None) -> int:
    return TIMELINE_LIMIT if instance is None else MACHINE_TIMELINE_LIMIT
