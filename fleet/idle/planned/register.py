"""What planned acts show on pages that are composed of many."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem


def register() -> None:
    panels.idle_tabs.register(NavItem("idle_planned", _("Planned"), "idle_planned", "", order=20))
