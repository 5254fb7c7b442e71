from __future__ import annotations

from django.urls import path

from fleet.idle.policies import use_views, views

team_urlpatterns = [
    path("idle/policies/", views.policies, name="idle_policies"),
    path("idle/policies/add/", views.policy_add, name="idle_policy_add"),
    path("idle/policies/preview/", views.policy_preview, name="idle_policy_preview"),
    path("idle/policies/<int:pk>/", views.policy_edit, name="idle_policy"),
    path("idle/policies/<int:pk>/move/", views.policy_move, name="idle_policy_move"),
    path("idle/policies/<int:pk>/remove/", views.policy_remove, name="idle_policy_remove"),
    path("instances/<int:pk>/use/", use_views.machine_use, name="machine_use"),
]
