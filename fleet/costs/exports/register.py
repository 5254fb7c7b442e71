"""What this slice shows on the page of costs, and adds to the metrics."""

from __future__ import annotations

from fleet import panels
from fleet.costs.exports.counting import budget_families, cost_families
from fleet.costs.exports.focus_columns import DEFAULT_VERSION, VERSIONS
from fleet.costs.exports.machine_families import machine_families
from fleet.costs.month import Month
from fleet.panels import Context, Panel
from fleet.teams.access import TeamRequest
from fleet.telemetry.giving.more import more_families


def register() -> None:
    panels.costs_panels.register(Panel("files", "costs/files.html", files, order=120))
    more_families.extend((machine_families, cost_families, budget_families))


def files(_request: TeamRequest, month: Month) -> Context:
    return {"month": month, "versions": VERSIONS, "usual_version": DEFAULT_VERSION}
