"""The panels of a job's page, in their order. One file each, one line here; JobPanel is in panel.py."""

from __future__ import annotations

from jobs.pages.panels import (
    charts,
    compare,
    environment,
    facts,
    findings,
    load,
    log,
    machines,
    measured,
    nodes,
    notebook,
    serving,
    steps,
)
from jobs.pages.panels.panel import JobPanel

__all__ = ["PANELS", "JobPanel"]

PANELS: tuple[JobPanel, ...] = (
    compare.PANEL,
    notebook.PANEL,
    serving.PANEL,
    findings.PANEL,
    charts.PANEL,
    load.PANEL,
    machines.PANEL,
    measured.PANEL,
    nodes.PANEL,
    environment.PANEL,
    serving.SERVER_PANEL,
    facts.PANEL,
    steps.PANEL,
    log.PANEL,
)
