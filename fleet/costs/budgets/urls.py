from __future__ import annotations

from django.urls import path

from fleet.costs.budgets import views

team_urlpatterns = [
    path("costs/budgets/", views.budgets, name="costs_budgets"),
    path("costs/budgets/add/", views.budget_add, name="costs_budget_add"),
    path("costs/budgets/<int:pk>/", views.budget_edit, name="costs_budget"),
    path("costs/budgets/<int:pk>/remove/", views.budget_remove, name="costs_budget_remove"),
    path("costs/planned/<int:pk>/cancel/", views.plan_cancel, name="costs_plan_cancel"),
    path("costs/blocks/<int:pk>/lift/", views.block_lift, name="costs_block_lift"),
]
