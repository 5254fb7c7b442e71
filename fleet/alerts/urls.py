from __future__ import annotations

from django.urls import path

from fleet.alerts.views import acts, alert, inbox, windows

team_urlpatterns = [
    path("alerts/", inbox.alerts, name="alerts"),
    path("alerts/act/", acts.alert_act, name="alert_act"),
    path("alerts/<int:pk>/", alert.alert, name="alert"),
    path("alerts/maintenance/", windows.windows, name="maintenance"),
    path("alerts/maintenance/<int:pk>/cancel/", windows.window_cancel, name="window_cancel"),
]
