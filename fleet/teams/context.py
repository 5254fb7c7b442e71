from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from fleet import panels
from fleet.teams.access import teams_visible_to


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """What base.html draws around every page of a team: rail, strip, team switch."""
    team = getattr(request, "team", None)
    if team is None:
        return {}
    return {
        "team": team,
        "membership": request.membership,  # type: ignore[attr-defined]
        "my_teams": teams_visible_to(request.user),
        "navigation": panels.navigation,
        "strip_figures": panels.strip_figures,
    }
