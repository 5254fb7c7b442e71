"""What right-sizing and rent-or-buy put on pages that are composed of many."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.month import Month
from fleet.costs.rightsizing.owning_panel import owning_panel
from fleet.costs.rightsizing.shown import left_alone, lines_of, open_rows, rows_of, total_of
from fleet.panels import Context, NavItem, Panel
from fleet.teams.access import TeamRequest

SHOWN, SHOWN_ALONE = 5, 4


def register() -> None:
    panels.costs_tabs.register(NavItem("right_sizing", _("Right-sizing"), "right_sizing", "", order=35))
    panels.costs_panels.register(Panel("right_sizing", "costs/rightsizing/panel.html", right_sizing_panel, order=90))
    panels.costs_panels.register(Panel("owning", "costs/rightsizing/owning.html", owning_panel, order=100))


def right_sizing_panel(request: TeamRequest, month: Month) -> Context | None:
    """As of the last look; nothing on the page of a month that is over, or before the first look."""
    if not month.is_current:
        return None
    total = total_of(request.team)
    if total.looked_at is None:
        return None
    lines = lines_of(open_rows(request.team)[:SHOWN])
    alone = left_alone(request.team, SHOWN_ALONE)
    looked_at = rows_of(request.team).filter(kind="").count()
    return {
        "total": total,
        "lines": lines,
        "others": total.count - len(lines),
        "alone": alone,
        "alone_others": looked_at - len(alone),
    }
