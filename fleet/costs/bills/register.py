"""What bills put into the product: a question to providers, and their part of the page about costs."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.bills.asking import CHARGES
from fleet.costs.bills.panel import reconcile_panel
from fleet.inventory.provider_word.reading import SUBJECTS
from fleet.panels import NavItem, Panel


def register() -> None:
    SUBJECTS[CHARGES.name] = CHARGES
    panels.costs_tabs.register(NavItem("bills", _("Bills"), "bills", "", order=60))
    panels.costs_panels.register(Panel("reconcile", "costs/bills_panel.html", reconcile_panel, order=80))
