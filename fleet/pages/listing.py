"""The list of machines: what a reader asked for in the address, and the machines that answer it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.pages.fleet import Group
from fleet.pages.machine import MachineView
from fleet.states import GpuState

PAGE_SIZE = 100
UNKNOWN_LAST = (True, 0)
Key = Callable[[MachineView], Any]


def _known(value: Decimal | float | None) -> tuple[bool, Any]:
    """What is not known sorts behind everything that is, whichever way the column runs."""
    return UNKNOWN_LAST if value is None else (False, value)


def project_name(view: MachineView) -> str:
    return view.instance.project.name if view.instance.project else ""


def owner_name(view: MachineView) -> str:
    return view.instance.owner.display_name if view.instance.owner else ""


SORTS: Mapping[str, Key] = {
    "name": lambda view: view.instance.name.lower(),
    "state": lambda view: list(GpuState).index(view.state),
    "gpus": lambda view: (view.gpu_label.lower(), len(view.tiles)),
    "busy": lambda view: _known(view.busy_percent),
    "memory": lambda view: _known(view.memory_percent),
    "project": lambda view: (project_name(view).lower(), owner_name(view).lower()),
    "price": lambda view: _known(view.price),
    "read": lambda view: _known(view.read_at.timestamp() if view.read_at else None),
}
NUMERIC = frozenset({"busy", "memory", "price", "read"})
GROUPS: Mapping[str, tuple[str | Promise, Callable[[MachineView], str]]] = {
    "provider": (gettext_lazy("Provider"), lambda view: view.provider),
    "project": (gettext_lazy("Project"), project_name),
    "owner": (gettext_lazy("Owner"), owner_name),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reading of the address; what makes no sense in it is left out, never an error."""

    search: str = ""
    states: tuple[GpuState, ...] = ()
    provider: str = ""
    acting: bool = False
    sort: str = "price"
    descending: bool = True
    group: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        known = {state.value for state in GpuState}
        sort = query.get("sort", "")
        sort = sort if sort.removeprefix("-") in SORTS else "-price"
        page = query.get("page", "1")
        return cls(
            search=query.get("q", "").strip()[:200],
            states=tuple(GpuState(word) for word in query.getlist("state") if word in known),
            provider=query.get("provider", "")[:40],
            acting=query.get("acting") == "1",
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            group=group if (group := query.get("group", "")) in GROUPS else "",
            page=max(1, int(page)) if page.isdecimal() and len(page) < 6 else 1,
        )

    @property
    def filters(self) -> bool:
        return bool(self.search or self.states or self.provider or self.acting)

    def accepts(self, view: MachineView, acting: Container[int] = ()) -> bool:
        """`acting`: the machines on which an operation is under way."""
        if self.acting and view.instance.pk not in acting:
            return False
        if self.states and not any(state in view.counts or view.state is state for state in self.states):
            return False
        if self.provider and view.instance.account.kind != self.provider:
            return False
        return self.search.lower() in haystack(view)


def haystack(view: MachineView) -> str:
    instance = view.instance
    words = (instance.name, view.gpu_label, instance.region, view.provider, project_name(view), owner_name(view))
    return "\n".join(words).lower()


def ordered(machines: list[MachineView], wanted: Wanted) -> list[MachineView]:
    key = SORTS[wanted.sort]
    by_name = sorted(machines, key=SORTS["name"])
    if wanted.sort not in NUMERIC or not wanted.descending:
        return sorted(by_name, key=key, reverse=wanted.descending)
    known = [view for view in by_name if key(view) != UNKNOWN_LAST]
    unknown = [view for view in by_name if key(view) == UNKNOWN_LAST]
    return sorted(known, key=key, reverse=True) + unknown


@dataclass(frozen=True)
class Section(Group):
    """A part of the list under one heading; `label` is "" where the list is not grouped."""

    label: str
    total: Group


def sections(machines: list[MachineView], wanted: Wanted) -> list[Section]:
    """One page of machines under their headings; each heading's totals cover all of its machines, not the page's."""
    if not wanted.group:
        return [Section(_page(machines, wanted), "", Group(machines))]
    _label, name_of = GROUPS[wanted.group]
    grouped = sorted(machines, key=lambda view: (not name_of(view), name_of(view).lower()))
    totals = {name: Group([view for view in grouped if name_of(view) == name]) for name in set(map(name_of, grouped))}
    return [
        Section(list(views), name or _none_of(wanted.group), totals[name])
        for name, views in groupby(_page(grouped, wanted), key=name_of)
    ]


def _none_of(group: str) -> str:
    return _("no owner") if group == "owner" else _("no project")


def _page(machines: list[MachineView], wanted: Wanted) -> list[MachineView]:
    start = (wanted.page - 1) * PAGE_SIZE
    return machines[start : start + PAGE_SIZE]
