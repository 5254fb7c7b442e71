"""What schedules show on pages that are composed of many, and what they answer for their planned acts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.idle.schedules.planning import plan_stands
from fleet.idle.schedules.words import KIND, edge_words
from fleet.inventory.plans.reasons import register_reason
from fleet.inventory.plans.standing import register_standing
from fleet.panels import NavItem


def register() -> None:
    panels.idle_tabs.register(NavItem("idle_schedules", _("Schedules"), "idle_schedules", "", order=40))
    register_reason(KIND, edge_words)
    register_standing(KIND, plan_stands)
