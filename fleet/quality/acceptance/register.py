"""Where acceptance tests are shown, and what they hear."""

from __future__ import annotations

from fleet import panels
from fleet.alerts.words import register_words
from fleet.panels import Panel
from fleet.quality.acceptance.reports import SIGNAL
from fleet.quality.acceptance.shown import acceptance_context
from fleet.quality.acceptance.tasks import judge_acceptance
from fleet.quality.acceptance.words import alert_words
from fleet.telemetry.actions.models import AgentAction, AgentActionName, AgentActionState
from fleet.telemetry.actions.signals import action_ended


def register() -> None:
    panels.machine_panels.register(Panel("acceptance", "quality/acceptance_panel.html", acceptance_context, order=26))
    register_words(SIGNAL, alert_words)
    action_ended.connect(_judge, dispatch_uid="fleet.quality.acceptance")


def _judge(*, action: AgentAction, **_signal: object) -> None:
    """At once; the periodic task finds what is lost on the way."""
    if action.name == AgentActionName.ACCEPT and action.state == AgentActionState.DONE:
        judge_acceptance.delay(action.pk)
