"""What this slice shows on pages that are composed of many."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.alerts import planned_acts
from fleet.alerts.shown import alert_events, how_fast, machine_alerts, open_alerts, open_count, windows_ahead
from fleet.panels import NavItem, Panel


def register_panels() -> None:
    planned_acts.register()
    panels.navigation.register(NavItem("alerts", _("Alerts"), "alerts", "alerts", order=50, count=open_count))
    panels.strip_figures.register(Panel("alerts", "alerts/figure.html", open_alerts, order=40))
    panels.machine_panels.register(Panel("alerts", "alerts/machine_panel.html", machine_alerts, order=10))
    panels.timeline_sources.register(Panel("alerts", "", alert_events, order=30))
    panels.inbox_panels.register(Panel("windows", "alerts/windows_panel.html", windows_ahead, order=20))
    panels.inbox_panels.register(Panel("answers", "alerts/answers_panel.html", how_fast, order=30))
