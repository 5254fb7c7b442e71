from __future__ import annotations

from django.contrib.auth import views as auth_views
from django.urls import path

from fleet.teams.views import settings
from fleet.teams.views.home import account, home

urlpatterns = [
    path("", home, name="home"),
    path("login/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("account/", account, name="account"),
]
# Under /t/<team>/; TeamMiddleware has checked the membership before any of these views runs.
team_urlpatterns = [
    path("settings/", settings.team_settings, name="team_settings"),
    path("settings/team/", settings.save_team, name="save_team"),
]
