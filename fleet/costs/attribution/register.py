"""What attribution listens to and shows on pages that are composed of many."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.costs.attribution.models import SplitMode
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.attribution.views.machine import whose_panel
from fleet.costs.attribution.whose import Attributed
from fleet.inventory.models import Instance
from fleet.inventory.plans.whose import register_attribution
from fleet.inventory.signals import machine_described
from fleet.panels import NavItem, Panel
from fleet.teams.audit_words import VALUES


def register() -> None:
    panels.costs_tabs.register(NavItem("rules", _("Attribution"), "costs_rules", "", order=60))
    panels.machine_panels.register(Panel("whose", "costs/whose.html", whose_panel, order=37))
    machine_described.connect(follow, dispatch_uid="costs.attribution")
    register_attribution(Attributed())
    VALUES["split"] = dict(SplitMode.choices)


def follow(instance: Instance, **_signal: object) -> None:
    """At once, so that the machine's page shows it; the task would get to it within the minute."""
    sync_attribution(team=instance.team, now=timezone.now(), instances=[instance.pk])
