from __future__ import annotations

from django.urls import path

from fleet.costs.charges import views

team_urlpatterns = [
    path("costs/charges/", views.charges, name="costs_charges"),
    path("costs/charges/<int:pk>/end/", views.charge_end, name="charge_end"),
    path("costs/charges/<int:pk>/remove/", views.charge_remove, name="charge_remove"),
]
