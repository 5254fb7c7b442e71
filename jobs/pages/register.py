"""What jobs put into the frame of pages."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem


def register() -> None:
    panels.navigation.register(NavItem("jobs", _("Jobs"), "jobs", "jobs", order=75, far=True))
