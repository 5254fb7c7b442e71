"""A fresh installation: this machine reports, nothing is rented yet."""

from __future__ import annotations

import socket

from fleet.pages.fleet import Fleet
from fleet.pages.machine import MachineView
from fleet.panels import Context


def is_first_run(fleet: Fleet) -> bool:
    """Nothing that could cost money is known: no provider polled, no GPU, no price."""
    return not fleet.team.is_sandbox and not any(
        view.tiles or view.price or view.instance.account.kind != "manual" for view in fleet.machines
    )


def this_machine(fleet: Fleet) -> MachineView | None:
    """The machine that Rackrent itself runs on, by its host name; else the first one that reports."""
    reporting = [view for view in fleet.machines if view.agent and view.read_at]
    here = socket.gethostname()
    return next((view for view in reporting if view.agent and view.agent.hostname == here), None) or next(
        iter(reporting), None
    )


def start_context(fleet: Fleet) -> Context:
    return {"here": this_machine(fleet)}
