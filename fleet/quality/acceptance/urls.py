from __future__ import annotations

from django.urls import path

from fleet.quality.acceptance import views

team_urlpatterns = [
    path("instances/<int:pk>/acceptance/", views.acceptance, name="acceptance"),
    path("instances/<int:pk>/acceptance/ask/", views.ask, name="acceptance_ask"),
]
