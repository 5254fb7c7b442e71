from __future__ import annotations

from django.urls import path

from fleet.costs.attribution.views import again, machine, rules, unix_users

team_urlpatterns = [
    path("costs/rules/", rules.rules, name="costs_rules"),
    path("costs/rules/new/", rules.rule_new, name="costs_rule_new"),
    path("costs/rules/<int:pk>/", rules.rule_change, name="costs_rule"),
    path("costs/rules/<int:pk>/end/", rules.rule_end, name="costs_rule_end"),
    path("costs/rules/<int:pk>/move/", rules.rule_move, name="costs_rule_move"),
    path("costs/rules/again/", again.again, name="costs_rules_again"),
    path("costs/rules/users/", unix_users.unix_users, name="costs_rules_users"),
    path("costs/rules/users/<int:pk>/remove/", unix_users.unix_user_remove, name="costs_rules_user_remove"),
    path("instances/<int:pk>/split/", machine.machine_split, name="machine_split"),
]
