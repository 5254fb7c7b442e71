"""What the pages of this slice put into the frame: their places in the rail, and three of the four figures."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet import panels
from fleet.pages import figures
from fleet.pages.costs.machine import machine_costs
from fleet.pages.costs.waste import bought_nothing, top_wasters
from fleet.pages.costs.went import where_it_went
from fleet.pages.idle.count import count_words, idle_count
from fleet.pages.idle.machine import machine_idle
from fleet.pages.idle.savings import saved_by_stopping
from fleet.pages.idle.timeline import told_plans, told_stops
from fleet.pages.stretches import told_states
from fleet.pages.timeline_money import told_money
from fleet.panels import NavItem, Panel

FIGURE = "components/figure.html"


def register_panels() -> None:
    panels.navigation.register(NavItem("overview", _("Overview"), "overview", "overview", order=10))
    panels.navigation.register(NavItem("instances", _("Instances"), "instances", "instances", order=20))
    panels.navigation.register(NavItem("usage", _("Usage"), "usage", "usage", order=25, far=True))
    panels.navigation.register(
        NavItem("idle", _("Idle"), "idle", "idle", order=30, count=idle_count, count_words=count_words)
    )
    panels.idle_tabs.register(NavItem("idle", _("Idle"), "idle", "", order=10))
    panels.navigation.register(NavItem("costs", _("Costs"), "costs", "costs", order=35, far=True))
    panels.costs_tabs.register(NavItem("costs", _("Costs"), "costs", "", order=10))
    panels.costs_panels.register(Panel("went", "costs/went.html", where_it_went, order=30))
    panels.costs_panels.register(Panel("nothing", "costs/waste.html", bought_nothing, order=40))
    panels.costs_panels.register(Panel("stopped", "idle/costs.html", saved_by_stopping, order=65))
    panels.costs_panels.register(Panel("wasters", "costs/wasters.html", top_wasters, order=50))
    panels.machine_panels.register(Panel("idle", "idle/machine.html", machine_idle, order=5))
    panels.timeline_sources.register(Panel("states", "", told_states, order=5))
    panels.timeline_sources.register(Panel("stops", "", told_stops, order=40))
    panels.timeline_sources.register(Panel("planned", "", told_plans, order=50))
    panels.timeline_sources.register(Panel("money", "", told_money, order=90))
    panels.machine_panels.register(Panel("costs", "costs/machine.html", machine_costs, order=35))
    panels.navigation.register(NavItem("cleanup", _("Cleanup"), "cleanup", "cleanup", order=67, far=True))
    panels.navigation.register(NavItem("planner", _("Planner"), "planner", "planner", order=70, far=True))
    panels.strip_figures.register(Panel("burn", FIGURE, figures.burn, order=10))
    panels.strip_figures.register(Panel("idle", FIGURE, figures.idle_money, order=20))
    panels.strip_figures.register(Panel("month", FIGURE, figures.month_to_date, order=30))
