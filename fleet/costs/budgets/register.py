"""What budgets show on pages that are composed of many."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.budgets import words
from fleet.costs.budgets.acting import plan_stands
from fleet.costs.budgets.shown import budgets_of, footer, headline, judged_at, scale_of
from fleet.costs.month import Month
from fleet.inventory.plans.standing import register_standing
from fleet.panels import Context, NavItem, Panel
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role


def register() -> None:
    words.register()
    register_standing("budget", plan_stands)
    panels.costs_tabs.register(NavItem("costs_budgets", _("Budgets"), "costs_budgets", "", order=20))
    panels.costs_panels.register(Panel("budgets", "costs/budgets/panel.html", budgets_panel, order=70))


def budgets_panel(request: TeamRequest, month: Month) -> Context | None:
    """As of now; nothing on the page of a month that is over."""
    if not month.is_current:
        return None
    lines = budgets_of(request.team, timezone.now())
    return {
        "lines": lines,
        "headline": headline(lines),
        "scale": scale_of(lines),
        "footer": footer(lines),
        "judged_at": judged_at(lines),
        "may_change": request.membership.can(Role.ADMIN),
    }
