from __future__ import annotations

from django.urls import path

from fleet.alerts.channels.views import channels, links

urlpatterns = [
    path("a/<str:token>/", links.alert_link, name="alert_link"),
    path("calendar/<str:secret>.ics", links.calendar_feed, name="calendar_feed"),
]
team_urlpatterns = [
    path("settings/channels/", channels.channels, name="channels"),
    path("settings/channels/new/<slug:kind>/", channels.channel_new, name="channel_new"),
    path("settings/channels/calendar/", channels.calendar_make, name="calendar_make"),
    path("settings/channels/calendar/revoke/", channels.calendar_revoke, name="calendar_revoke"),
    path("settings/channels/<int:channel_id>/", channels.channel, name="channel"),
    path("settings/channels/<int:channel_id>/test/", channels.channel_test, name="channel_test"),
    path("settings/channels/<int:channel_id>/remove/", channels.channel_remove, name="channel_remove"),
    path("settings/channels/<int:channel_id>/routes/new/", channels.route_new, name="route_new"),
    path("settings/routes/<int:route_id>/", channels.route_edit, name="route"),
    path("settings/routes/<int:route_id>/remove/", channels.route_remove, name="route_remove"),
]
