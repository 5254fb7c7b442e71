from __future__ import annotations

from django.urls import path

from fleet.idle.schedules import views

team_urlpatterns = [
    path("idle/schedules/", views.schedules, name="idle_schedules"),
    path("idle/schedules/add/", views.schedule_add, name="idle_schedule_add"),
    path("idle/schedules/<int:pk>/", views.schedule_edit, name="idle_schedule"),
    path("idle/schedules/<int:pk>/remove/", views.schedule_remove, name="idle_schedule_remove"),
]
