"""Offers side by side: one row a property, in the order in which renters are advised to look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.formats import money_text
from fleet.inventory.offers.shown import Line


class Row(NamedTuple):
    """`cells`: a text for each offer, "" where it does not say. `differs`: whether they are not all the same."""

    label: str
    cells: list[str]
    differs: bool


def compared(lines: Sequence[Line]) -> list[Row]:
    rows = []
    for label, cell_of in PROPERTIES:
        cells = [cell_of(line) for line in lines]
        rows.append(Row(str(label), cells, len(set(cells)) > 1))
    return rows


def _count(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:,.0f}{unit}"


def _hour(line: Line) -> str:
    price = line.offer.price_per_hour
    return "" if price is None else money_text(price, line.offer.currency)


def _gpu_hour(line: Line) -> str:
    return "" if line.gpu_price is None else money_text(line.gpu_price, line.offer.currency)


def _health(line: Line) -> str:
    return "" if line.health is None else gettext("%(stars)d of 5") % {"stars": line.health}


PROPERTIES: tuple[tuple[str | Promise, Callable[[Line], str]], ...] = (
    (_("Fit"), lambda line: str(line.score)),
    (_("GPU model"), lambda line: line.offer.gpu_model),
    (_("GPUs in a machine"), lambda line: _count(line.offer.gpu_count)),
    (_("Memory of a GPU"), lambda line: _count(line.gpu_memory_gib, " GiB")),
    (_("Memory of all its GPUs"), lambda line: _count(line.total_memory_gib, " GiB")),
    (_("Between GPUs"), lambda line: line.interconnect),
    (_("Between machines"), lambda line: _count(line.offer.node_network_gbps, " Gbit/s")),
    (_("Internet, down / up"), lambda line: line.internet),
    (_("vCPUs"), lambda line: _count(line.offer.vcpus)),
    (_("Main memory"), lambda line: _count(line.ram_gib, " GiB")),
    (_("Disk"), lambda line: f"{_count(line.offer.disk_gb, ' GB')} {line.offer.disk_kind.upper()}".strip()),
    (_("Tenancy"), lambda line: "" if line.offer.tenancy == "unknown" else line.tenancy),
    (_("Market"), lambda line: "" if line.offer.market == "unknown" else line.market),
    (_("Region"), lambda line: line.offer.region),
    (_("Health of machines"), _health),
    (_("Per hour"), _hour),
    (_("Per GPU and hour"), _gpu_hour),
)
