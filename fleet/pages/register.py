"""What the pages of this slice put into the frame: their places in the rail."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem


def register_panels() -> None:
    panels.navigation.register(NavItem("overview", _("Overview"), "overview", "overview", order=10))
