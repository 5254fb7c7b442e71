"""Pages that show machines alive: they compose what every slice below registers."""

from __future__ import annotations

from django.urls import path

from fleet.pages.overview import overview

team_urlpatterns = [path("", overview, name="overview")]
