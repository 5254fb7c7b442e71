from __future__ import annotations

from django.urls import path

from fleet.idle.dryrun import views

team_urlpatterns = [
    path("idle/policies/<int:pk>/dry-run/", views.dry_run_page, name="idle_dry_run"),
    path("idle/policies/<int:pk>/recommend/", views.recommend_now, name="idle_recommend"),
]
