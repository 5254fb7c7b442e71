"""Which column of a file is what: ours, those of providers' invoices, and whatever somebody assigned by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleet.costs.bills.files.cells import Cells
from fleet.providers.base import ChargeKind

# Ours, in the order in which they are explained. Only the first two have to be there.
OURS = (
    "amount",
    "start",
    "end",
    "machine",
    "resource",
    "kind",
    "quantity",
    "unit",
    "currency",
    "description",
    "line_id",
)
NEEDED = ("amount", "start")


@dataclass(frozen=True, slots=True)
class Layout:
    """`columns`: ours -> the file's. `fixed`: what every line has that the file has no column for.

    `kinds`: what is found within a word of the kind, and what it means; of several the first. Unknown words are kept as they are.
    """

    name: str
    columns: Mapping[str, str]
    fixed: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, ChargeKind] = field(default_factory=dict)

    def fits(self, columns: Sequence[str]) -> bool:
        return all(theirs in columns for theirs in self.columns.values())

    def cells(self, row: Cells) -> dict[str, str]:
        return {**self.fixed, **{ours: row.get(theirs, "") for ours, theirs in self.columns.items()}}


OWN_KINDS: Mapping[str, ChargeKind] = {kind.value: kind for kind in ChargeKind}
# https://docs.digitalocean.com: the CSV of an invoice, as the API's own description shows it.
DIGITALOCEAN = Layout(
    "digitalocean",
    {
        "kind": "product",
        "description": "description",
        "quantity": "hours",
        "start": "start",
        "end": "end",
        "amount": "USD",
    },
    fixed={"unit": "hours", "currency": "USD"},
    kinds={
        "tax": ChargeKind.TAX,
        "credit": ChargeKind.CREDIT,
        "bandwidth": ChargeKind.EGRESS,
        "volume": ChargeKind.NETWORK_VOLUME,
        "snapshot": ChargeKind.DISK,
        "backup": ChargeKind.DISK,
        "floating ip": ChargeKind.ADDRESS,
        "reserved ip": ChargeKind.ADDRESS,
        "droplet": ChargeKind.COMPUTE,
    },
)
# AWS's Cost and Usage Report in its older form; Data Exports write FOCUS, which needs no assignment.
AWS_REPORT = Layout(
    "aws_report",
    {
        "machine": "lineItem/ResourceId",
        "kind": "lineItem/UsageType",
        "start": "lineItem/UsageStartDate",
        "end": "lineItem/UsageEndDate",
        "quantity": "lineItem/UsageAmount",
        "amount": "lineItem/UnblendedCost",
        "currency": "lineItem/CurrencyCode",
        "description": "lineItem/LineItemDescription",
    },
    kinds={
        "boxusage": ChargeKind.COMPUTE,
        "spotusage": ChargeKind.COMPUTE,
        "ebs:": ChargeKind.DISK,
        "datatransfer": ChargeKind.EGRESS,
        "elasticip": ChargeKind.ADDRESS,
        "publicipv4": ChargeKind.ADDRESS,
        "tax": ChargeKind.TAX,
    },
)
PRESETS = (DIGITALOCEAN, AWS_REPORT)


def layout_of(columns: Sequence[str], assigned: Mapping[str, str]) -> Layout | None:
    """None: nobody can tell which column is the amount, or the time."""
    if assigned:
        mine = {ours: theirs for ours, theirs in assigned.items() if ours in OURS and theirs in columns}
        return Layout("assigned", mine, kinds=OWN_KINDS) if set(NEEDED) <= set(mine) else None
    if set(NEEDED) <= set(columns):
        return Layout("own", {name: name for name in OURS if name in columns}, kinds=OWN_KINDS)
    return next((preset for preset in PRESETS if preset.fits(columns)), None)


def kind_of(word: str, layout: Layout) -> ChargeKind:
    """Words of ours have to be whole; those of providers are looked for within theirs."""
    lower = word.strip().lower()
    if layout.kinds is OWN_KINDS:
        return OWN_KINDS.get(lower, ChargeKind.OTHER)
    return next((kind for part, kind in layout.kinds.items() if part in lower), ChargeKind.OTHER)
