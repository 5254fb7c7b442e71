from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem


def register() -> None:
    panels.costs_tabs.register(NavItem("rates", _("Exchange rates"), "costs_rates", "", order=80))
