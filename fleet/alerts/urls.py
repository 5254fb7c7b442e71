from __future__ import annotations

from django.urls import path

from fleet.alerts.views import acts, alert, escalation, inbox, rules, windows

team_urlpatterns = [
    path("alerts/", inbox.alerts, name="alerts"),
    path("alerts/act/", acts.alert_act, name="alert_act"),
    path("alerts/<int:pk>/", alert.alert, name="alert"),
    path("alerts/rules/", rules.rules, name="alert_rules"),
    path("alerts/rules/<slug:kind>/", rules.rule, name="alert_rule"),
    path("alerts/rules/<slug:kind>/preview/", rules.rule_preview, name="alert_rule_preview"),
    path("alerts/escalation/", escalation.escalation, name="alert_escalation"),
    path("alerts/maintenance/", windows.windows, name="maintenance"),
    path("alerts/maintenance/<int:pk>/cancel/", windows.window_cancel, name="window_cancel"),
]
