from __future__ import annotations

from django.urls import path

from fleet.costs.anomalies import views

team_urlpatterns = [
    path("costs/anomalies/", views.anomalies, name="costs_anomalies"),
    path("costs/anomalies/<slug:kind>/", views.anomaly_rule, name="costs_anomaly_rule"),
    path("costs/anomalies/<slug:kind>/preview/", views.anomaly_preview, name="costs_anomaly_preview"),
]
