from __future__ import annotations

from django.urls import path

from fleet.telemetry.views import agents, exporters, polling, sources

team_urlpatterns = [
    path("live/", polling.live, name="live"),
    path("instances/<int:pk>/exporters/add/", exporters.exporter_add, name="exporter_add"),
    path("exporters/<int:target_id>/", exporters.exporter_edit, name="exporter_edit"),
    path("exporters/<int:target_id>/read/", exporters.exporter_read, name="exporter_read"),
    path("exporters/<int:target_id>/host-key/", exporters.exporter_host_key, name="exporter_host_key"),
    path("exporters/<int:target_id>/remove/", exporters.exporter_remove, name="exporter_remove"),
    path("settings/sources/", sources.sources, name="sources"),
    path("settings/sources/<int:source_id>/", sources.source_edit, name="source_edit"),
    path("settings/sources/<int:source_id>/remove/", sources.source_remove, name="source_remove"),
    path("settings/sources/machines/<int:row_id>/", sources.source_machine, name="source_machine"),
    path("settings/agents/", agents.agents, name="agents"),
    path("settings/agents/tokens/", agents.new_enrolment_token, name="new_enrolment_token"),
    path("settings/agents/tokens/<int:token_id>/end/", agents.end_enrolment_token, name="end_enrolment_token"),
    path("settings/agents/<int:agent_id>/interval/", agents.set_interval, name="set_agent_interval"),
    path("settings/agents/<int:agent_id>/pause/", agents.set_paused, name="set_agent_paused"),
    path("settings/agents/<int:agent_id>/end/", agents.end_agent, name="end_agent"),
    path("settings/agents/<int:agent_id>/settle/", agents.settle, name="settle_agent"),
]
