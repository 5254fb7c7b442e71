from __future__ import annotations

from django.contrib.auth import views as auth_views
from django.urls import path

from fleet.teams.views import home, join, members, settings

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("account/", home.teams, name="account"),
    path("teams/", home.teams, name="teams"),
    path("teams/new/", home.new_team, name="new_team"),
    path("join/", join.join, name="join"),
    path("join/<str:secret>/", join.join_link, name="join_link"),
]
# Under /t/<team>/; TeamMiddleware has checked the membership before any of these views runs.
team_urlpatterns = [
    path("settings/", settings.team_settings, name="team_settings"),
    path("settings/team/", settings.save_team, name="save_team"),
    path("settings/leave/", members.leave, name="leave_team"),
    path("settings/members/", members.members, name="members"),
    path("settings/members/invite/", members.invite, name="invite"),
    path("settings/members/<int:user_id>/role/", members.set_role, name="set_role"),
    path("settings/members/<int:user_id>/remove/", members.remove, name="remove_member"),
    path("settings/invitations/<int:invitation_id>/withdraw/", members.withdraw_invitation, name="withdraw_invitation"),
]
