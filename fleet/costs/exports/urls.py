from __future__ import annotations

from django.urls import path

from fleet.costs.exports import views

team_urlpatterns = [path("costs/export/", views.costs_export, name="costs_export")]
