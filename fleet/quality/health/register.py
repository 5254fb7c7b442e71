"""Where health is shown."""

from __future__ import annotations

from fleet import panels
from fleet.panels import Panel
from fleet.quality.health.shown import health_context, providers_context


def register() -> None:
    panels.machine_panels.register(Panel("health", "quality/health_panel.html", health_context, order=28))
    panels.offer_panels.register(Panel("health", "quality/providers_panel.html", providers_context, order=10))
