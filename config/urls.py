from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.i18n import set_language

from config import api
from fleet.pages import urls as pages
from fleet.teams import urls as teams

team_urlpatterns = [*pages.team_urlpatterns, *teams.team_urlpatterns]

urlpatterns = [
    path("language/", login_not_required(set_language), name="set_language"),
    path("t/<slug:team_slug>/", include(team_urlpatterns)),
    *api.urlpatterns,
    *teams.urlpatterns,
]
