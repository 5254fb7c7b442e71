from __future__ import annotations

from django.urls import path

from fleet.alerts.channels.views import links

urlpatterns = [
    path("a/<str:token>/", links.alert_link, name="alert_link"),
    path("calendar/<str:secret>.ics", links.calendar_feed, name="calendar_feed"),
]
