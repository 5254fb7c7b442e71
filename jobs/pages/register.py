"""What jobs put into the frame of pages."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem, Panel
from jobs.pages.on_machine import jobs_here, told_jobs


def register() -> None:
    panels.navigation.register(NavItem("jobs", _("Jobs"), "jobs", "jobs", order=75, far=True))
    panels.machine_panels.register(Panel("jobs", "jobs/machine_panel.html", jobs_here, order=8))
    panels.timeline_sources.register(Panel("jobs", "", told_jobs, order=35))
