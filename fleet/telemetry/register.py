"""What this slice shows on pages that are composed of many, and the partitions that a migrated database must have."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem, Panel
from fleet.telemetry.live_operations import listen as listen_to_operations
from fleet.telemetry.machine_panel import agent_context, environment_context, exporters_context, serving_context
from fleet.telemetry.partitions import are_partitioned, ensure_partitions
from fleet.telemetry.timeline import machine_events


def register_panels() -> None:
    panels.settings_tabs.register(NavItem("agents", _("Agents"), "agents", "", order=40))
    panels.settings_tabs.register(NavItem("sources", _("Sources"), "sources", "", order=45))
    panels.machine_panels.register(Panel("serving", "telemetry/serving_panel.html", serving_context, order=25))
    panels.machine_panels.register(Panel("agent", "telemetry/agent_panel.html", agent_context, order=30))
    panels.machine_panels.register(Panel("exporters", "telemetry/exporters_panel.html", exporters_context, order=35))
    panels.machine_panels.register(
        Panel("environment", "telemetry/environment_panel.html", environment_context, order=40)
    )
    panels.timeline_sources.register(Panel("events", "", machine_events, order=20))
    listen_to_operations()
    post_migrate.connect(_make_partitions, dispatch_uid="fleet.telemetry.partitions")


def _make_partitions(sender: AppConfig, **_signal: Any) -> None:
    # Migrating back to before the tables were partitioned is no error.
    if sender.label == "fleet" and are_partitioned():
        ensure_partitions(now=timezone.now())
