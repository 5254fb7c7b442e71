"""What this slice shows on pages that are composed of many."""

from __future__ import annotations

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.inventory.health import health_of
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import HoldKind, Instance, ProviderAccount
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.timeline import operated
from fleet.inventory.operations.words import FAILURES
from fleet.inventory.provider_word.panel import usage_panel
from fleet.inventory.provider_word.timeline import announced
from fleet.inventory.timeline import held, observed
from fleet.inventory.words import STATES, TENANCIES, choices
from fleet.panels import Context, NavItem, Panel
from fleet.teams.access import TeamRequest
from fleet.teams.audit_words import VALUES
from fleet.teams.models import Role


def register_panels() -> None:
    panels.navigation.register(NavItem("operations", _("Operations"), "operations", "operations", order=22, far=True))
    panels.navigation.register(NavItem("images", _("Images"), "images", "images", order=60, far=True))
    panels.navigation.register(NavItem("offers", _("Offers"), "offers", "offers", order=65, far=True))
    panels.settings_tabs.register(NavItem("providers", _("Providers"), "providers", "", order=40))
    panels.settings_tabs.register(NavItem("ssh", _("SSH"), "ssh_key", "", order=45))
    panels.machine_panels.register(Panel("holds", "inventory/machine_panel.html", machine_panel, order=40))
    panels.machine_panels.register(Panel("provider_usage", "inventory/provider_usage.html", usage_panel, order=20))
    panels.overview_panels.register(Panel("unread_accounts", "inventory/unread.html", unread_accounts, order=20))
    panels.timeline_sources.register(Panel("observations", "", observed))
    panels.timeline_sources.register(Panel("holds", "", held))
    panels.timeline_sources.register(Panel("operations", "", operated))
    panels.timeline_sources.register(Panel("notices", "", announced))
    VALUES.update({"state": dict(choices(STATES)), "tenancy": dict(choices(TENANCIES)), "kind": dict(HoldKind.choices)})
    VALUES.update({"act": dict(OperationKind.choices), "error": FAILURES})


def unread_accounts(request: TeamRequest) -> Context | None:
    """Accounts whose readings do not arrive: what the pages show of their machines grows old. None when all is well."""
    now = timezone.now()
    accounts = (
        ProviderAccount.objects.filter(team=request.team, disconnected_at=None)
        .annotate(machine_count=Count("instances", filter=Q(instances__gone_at=None)))
        .order_by("name")
    )
    bad = [(account, health) for account in accounts if (health := health_of(account, now=now)).is_bad]
    return {"accounts": bad} if bad else None


def machine_panel(request: TeamRequest, instance: Instance) -> Context:
    """Whose the machine is, and what keeps it running."""
    holds = holds_in_force(now=timezone.now()).filter(instance=instance).select_related("owner").order_by("started_at")
    return {
        "instance": instance,
        "holds": list(holds),
        "may_change": request.membership.can(Role.OPERATOR),
    }
