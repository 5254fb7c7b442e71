from __future__ import annotations

from django.urls import path

from fleet.costs.rates import views

team_urlpatterns = [
    path("costs/rates/", views.rates, name="costs_rates"),
    path("costs/rates/set/", views.rate_set, name="costs_rate_set"),
    path("costs/rates/import/", views.rates_import, name="costs_rates_import"),
    path("costs/rates/<int:pk>/remove/", views.rate_remove, name="costs_rate_remove"),
]
