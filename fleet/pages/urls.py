"""Pages that show machines alive: they compose what every slice below registers."""

from __future__ import annotations

from django.urls import path

from fleet.pages import cleanup, heat, instance, instances, launch, machine_timeline, overview, start, usage
from fleet.pages.costs import view as costs
from fleet.pages.idle import acts as idle_acts
from fleet.pages.idle import view as idle
from fleet.teams.access import requires
from fleet.teams.models import Role
from planner.web import views as planner

# They only ask: what is pasted is too long for an address.
asks = requires(Role.VIEWER)

team_urlpatterns = [
    path("", overview.overview, name="overview"),
    path("pulse/", overview.overview_pulse, name="overview_pulse"),
    path("states/", overview.overview_states, name="overview_states"),
    path("sandbox/hide/", overview.hide_sandbox, name="hide_sandbox"),
    path("start/install/", start.install_line, name="install_line"),
    path("launch/", launch.launch, name="launch"),
    path("instances/", instances.instances, name="instances"),
    path("instances.csv", instances.instances_csv, name="instances_csv"),
    path("instances/<int:pk>/", instance.instance, name="instance"),
    path("instances/<int:pk>/timeline/", machine_timeline.machine_timeline, name="machine_timeline"),
    path("instances/<int:pk>/series/", instance.instance_series, name="instance_series"),
    path("instances/<int:pk>/heat/", instance.instance_heat, name="instance_heat"),
    path("cleanup/", cleanup.cleanup, name="cleanup"),
    path("cleanup/gone/", cleanup.cleanup_gone, name="cleanup_gone"),
    path("costs/", costs.costs, name="costs"),
    path("idle/", idle.idle, name="idle"),
    path("idle/pulse/", idle.idle_pulse, name="idle_pulse"),
    path("idle/stops/<int:pk>/snooze/", idle_acts.idle_stop_snooze, name="idle_stop_snooze"),
    path("idle/stops/<int:pk>/veto/", idle_acts.idle_stop_veto, name="idle_stop_veto"),
    path("idle/stops/<int:pk>/now/", idle_acts.idle_stop_now, name="idle_stop_now"),
    path("usage/", usage.usage, name="usage"),
    path("usage/heat/", heat.usage_heat, name="usage_heat"),
    path("planner/", planner.planner, name="planner"),
    path("planner/config/", asks(planner.read_config), name="planner_config"),
    path("planner/symptom/", asks(planner.symptom), name="planner_symptom"),
    path("instances/<int:pk>/pulse/", instance.instance_pulse, name="instance_pulse"),
]
