"""What typed charges show on pages that are composed of many."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.charges.words import KINDS, UNITS
from fleet.panels import NavItem
from fleet.teams.audit_words import VALUES


def register() -> None:
    panels.costs_tabs.register(NavItem("costs_charges", _("Charges"), "costs_charges", "", order=70))
    VALUES["unit"] = {str(unit): word for unit, word in UNITS.items()}
    VALUES["charge"] = {str(kind): word for kind, word in KINDS.items()}
