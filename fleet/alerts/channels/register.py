"""What channels connect to, and show on pages of others, when the app is ready."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.alerts import outbox
from fleet.alerts.channels import leaving
from fleet.alerts.channels.routing import queue_deliveries
from fleet.alerts.channels.views.channels import channels_panel
from fleet.panels import NavItem, Panel


def register() -> None:
    outbox.receivers.append(queue_deliveries)
    leaving.connect()
    panels.settings_tabs.register(NavItem("channels", _("Channels"), "channels", "", order=50))
    panels.inbox_panels.register(Panel("channels", "alerts/channels/panel.html", channels_panel, order=10))
