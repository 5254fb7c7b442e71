"""What balances show on pages that are composed of many, and that they are read."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.balances import words
from fleet.costs.balances.keeping import BALANCE
from fleet.costs.balances.lines import Drawn
from fleet.costs.balances.shown import runways_of
from fleet.costs.month import Month
from fleet.inventory.provider_word.reading import SUBJECTS
from fleet.panels import Context, NavItem, Panel
from fleet.teams.access import TeamRequest


def register() -> None:
    SUBJECTS[BALANCE.name] = BALANCE
    words.register()
    panels.costs_tabs.register(NavItem("costs_balances", _("Balances"), "costs_balances", "", order=30))
    panels.costs_panels.register(Panel("runway", "costs/balances/panel.html", runway_panel, order=60))


def runway_panel(request: TeamRequest, month: Month) -> Context | None:
    """As of now; nothing on the page of a month that is over, and nothing where nothing is prepaid."""
    drawn = Drawn.of(runways_of(request.team, timezone.now())) if month.is_current else None
    return {"drawn": drawn} if drawn and drawn.lines else None
