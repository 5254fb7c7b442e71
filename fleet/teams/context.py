from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from fleet import panels
from fleet.teams.access import teams_visible_to
from fleet.teams.models import Membership, Role


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """What base.html draws around every page of a team: rail, strip, team switch."""
    # Pages of errors are drawn for requests that no middleware of ours has seen.
    team = getattr(request, "team", None)
    if team is None:
        return {}
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return {
        "team": team,
        "membership": membership,
        "my_teams": teams_visible_to(request.user),
        "navigation": panels.navigation,
        "settings_tabs": [tab for tab in panels.settings_tabs if membership.can(Role(tab.role))],
        "idle_tabs": [tab for tab in panels.idle_tabs if membership.can(Role(tab.role))],
        "costs_tabs": [tab for tab in panels.costs_tabs if membership.can(Role(tab.role))],
        "strip_figures": panels.strip_figures,
    }
