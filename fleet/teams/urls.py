from __future__ import annotations

from django.contrib.auth import views as auth_views
from django.urls import path

from fleet.teams.views import account, audit_log, home, join, members, oidc, projects, settings, tokens
from fleet.teams.views.language import switch_language
from fleet.teams.views.sign_in import SignIn

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", SignIn.as_view(), name="login"),
    path("oidc/authenticate/", oidc.start, name="oidc_authentication_init"),
    path("oidc/callback/", oidc.callback, name="oidc_authentication_callback"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("language/", switch_language, name="set_language"),
    path("account/", account.account, name="account"),
    path("account/profile/", account.save_profile, name="save_profile"),
    path("account/password/", account.save_password, name="save_password"),
    path("account/sessions/end/", account.end_one_session, name="end_session"),
    path("account/sessions/end-others/", account.end_sessions, name="end_sessions"),
    path("account/close/", account.close, name="close_account"),
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
    path("settings/projects/", projects.projects, name="projects"),
    path("settings/projects/new/", projects.new_project, name="new_project"),
    path("settings/projects/<int:project_id>/rename/", projects.rename, name="rename_project"),
    path("settings/projects/<int:project_id>/archive/", projects.archive, name="archive_project"),
    path("settings/projects/<int:project_id>/restore/", projects.restore, name="restore_project"),
    path("settings/tokens/", tokens.tokens, name="tokens"),
    path("settings/tokens/new/", tokens.new_token, name="new_token"),
    path("settings/tokens/<int:token_id>/revoke/", tokens.revoke, name="revoke_token"),
    path("settings/audit/", audit_log.audit_log, name="audit_log"),
    path("settings/audit.csv", audit_log.audit_csv, name="audit_csv"),
]
