"""What policies show on pages that are composed of many."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.idle.policies.models import IdleAction, IdleWindowFrom, UseMode
from fleet.idle.policies.use_views import use_panel
from fleet.panels import NavItem, Panel
from fleet.teams.audit_words import VALUES


def register() -> None:
    panels.idle_tabs.register(NavItem("idle_policies", _("Policies"), "idle_policies", "", order=30))
    panels.machine_panels.register(Panel("use", "idle/policies/use_panel.html", use_panel, order=38))
    VALUES.update({"used_as": dict(UseMode.choices), "then": dict(IdleAction.choices)})
    VALUES.update({"window_from": dict(IdleWindowFrom.choices)})
