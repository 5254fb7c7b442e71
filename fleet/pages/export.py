"""The list of machines as CSV. Cells that a spreadsheet would run as formulas are disarmed: names come from elsewhere."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

from fleet.pages.listing import owner_name, project_name
from fleet.pages.machine import ORDER, MachineView
from fleet.spreadsheets import disarmed

COLUMNS = (
    "name",
    "provider",
    "account",
    "region",
    "state",
    *(f"gpus_{state.value}" for state in ORDER),
    "gpu",
    "gpu_count",
    "busy_percent",
    "memory_percent",
    "project",
    "owner",
    "price_per_hour",
    "idle_price_per_hour",
    "currency",
    "read_at",
)


def machines_csv(machines: Iterable[MachineView]) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for view in machines:
        writer.writerow(map(disarmed, _row(view)))
    return buffer.getvalue()


def _row(view: MachineView) -> tuple[object, ...]:
    instance = view.instance
    return (
        instance.name,
        view.provider,
        instance.account.name,
        instance.region,
        view.state.value,
        *(view.counts.get(state, 0) for state in ORDER),
        view.gpu_label,
        len(view.tiles),
        view.busy_percent,
        view.memory_percent,
        project_name(view),
        owner_name(view),
        view.price,
        view.idle_price,
        instance.currency,
        view.read_at.isoformat() if view.read_at else None,
    )
