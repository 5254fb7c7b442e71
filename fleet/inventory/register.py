"""What this slice shows on pages that are composed of many."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Instance
from fleet.inventory.timeline import held, observed
from fleet.panels import Context, NavItem, Panel
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role


def register_panels() -> None:
    panels.navigation.register(NavItem("images", _("Images"), "images", "images", order=60, far=True))
    panels.settings_tabs.register(NavItem("providers", _("Providers"), "providers", "", order=40))
    panels.machine_panels.register(Panel("holds", "inventory/machine_panel.html", machine_panel, order=40))
    panels.timeline_sources.register(Panel("observations", "", observed))
    panels.timeline_sources.register(Panel("holds", "", held))


def machine_panel(request: TeamRequest, instance: Instance) -> Context:
    """Whose the machine is, and what keeps it running."""
    holds = holds_in_force(now=timezone.now()).filter(instance=instance).select_related("owner").order_by("started_at")
    return {
        "instance": instance,
        "holds": list(holds),
        "may_change": request.membership.can(Role.OPERATOR),
    }
