"""What this slice shows on pages that are composed of many."""

from __future__ import annotations

from django.core.checks import Tags, register
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.panels import NavItem
from fleet.teams import sessions
from fleet.teams.checks import check_openid


def register_panels() -> None:
    panels.navigation.register(NavItem("settings", _("Settings"), "team_settings", "settings", order=900, far=True))
    for tab in (
        NavItem("team", _("Team"), "team_settings", "", order=10),
        NavItem("members", _("Members"), "members", "", order=20),
        NavItem("projects", _("Projects"), "projects", "", order=30),
        NavItem("tokens", _("API tokens"), "tokens", "", order=80, role="admin"),
        NavItem("audit", _("Audit log"), "audit_log", "", order=90, role="admin"),
    ):
        panels.settings_tabs.register(tab)
    sessions.connect()
    register(check_openid, Tags.security)
