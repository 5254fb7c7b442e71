"""What the rules about unusual money show elsewhere: a tab of the pages about costs, and their alerts' words."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.anomalies import words
from fleet.panels import NavItem


def register() -> None:
    panels.costs_tabs.register(NavItem("anomalies", _("Anomalies"), "costs_anomalies", "", order=70))
    words.register()
