from __future__ import annotations

from django.urls import path

from fleet.costs.balances import views

team_urlpatterns = [
    path("costs/balances/", views.balances, name="costs_balances"),
    path("costs/balances/type/", views.balance_type, name="costs_balance_type"),
    path("costs/balances/limits/", views.balance_limits, name="costs_balance_limits"),
]
