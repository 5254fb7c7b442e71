from __future__ import annotations

from django.urls import path

from fleet.costs.rightsizing import views

team_urlpatterns = [
    path("costs/right-sizing/", views.right_sizing, name="right_sizing"),
    path("costs/right-sizing/<int:pk>/dismiss/", views.dismiss, name="right_sizing_dismiss"),
]
