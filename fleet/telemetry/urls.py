from __future__ import annotations

from django.urls import path

from fleet.telemetry.views import polling

team_urlpatterns = [path("live/", polling.live, name="live")]
