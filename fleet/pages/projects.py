"""What each project burns now, by what its GPUs do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from django.utils.translation import gettext as _

from fleet.formats import amounts_text, money_text
from fleet.pages.fleet import Group
from fleet.pages.machine import ORDER, MachineView
from fleet.states import GpuState
from fleet.words import state_word


@dataclass(frozen=True, slots=True)
class ProjectBurn:
    """One project in one currency. `parts`: percent of the largest project's bar, by state."""

    name: str
    amount: Decimal
    currency: str
    parts: list[tuple[GpuState, str]]
    spoken: str

    @property
    def amount_text(self) -> str:
        return money_text(self.amount, self.currency)


def burn_by_project(machines: Sequence[MachineView]) -> list[ProjectBurn]:
    """Most expensive first. A machine without GPUs or without a price has nothing to split and is left out."""

    def belongs(view: MachineView) -> tuple[str, str]:
        project = view.instance.project
        return view.instance.currency, project.name if project else ""

    priced = sorted((view for view in machines if view.price and view.tiles), key=belongs)
    groups = [(key, Group(list(views))) for key, views in groupby(priced, key=belongs)]
    widest = max((sum(group.amounts.values(), Decimal(0)) for _key, group in groups), default=Decimal(0))
    rows = [_row(name or _("no project"), currency, group, widest) for (currency, name), group in groups]
    return sorted(rows, key=lambda row: row.amount, reverse=True)


def _row(name: str, currency: str, group: Group, widest: Decimal) -> ProjectBurn:
    shares = [(state, share) for state in ORDER if any((share := group.share({state})).values())]
    parts = [(state, f"{100 * sum(share.values()) / widest:.2f}") for state, share in shares]
    spoken = ", ".join(f"{state_word(state)} {amounts_text(share)}" for state, share in shares)
    return ProjectBurn(name, sum(group.amounts.values(), Decimal(0)), currency, parts, spoken)
