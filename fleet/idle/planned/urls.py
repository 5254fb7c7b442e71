from __future__ import annotations

from django.urls import path

from fleet.idle.planned import views

team_urlpatterns = [
    path("idle/planned/", views.planned, name="idle_planned"),
    path("idle/planned/<int:pk>/cancel/", views.planned_cancel, name="idle_planned_cancel"),
    path("idle/planned/<int:pk>/postpone/", views.planned_postpone, name="idle_planned_postpone"),
    path("idle/planned/<int:pk>/extend/", views.planned_extend, name="idle_planned_extend"),
]
