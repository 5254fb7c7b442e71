from __future__ import annotations

from django.urls import path

from fleet.costs.reports import views

team_urlpatterns = [
    path("costs/report/<str:month>/", views.costs_report, name="costs_report"),
    path("costs/report/<str:month>/mail/", views.costs_report_mail, name="costs_report_mail"),
    path("costs/report/<str:month>/send/", views.costs_report_send, name="costs_report_send"),
    path("costs/report/<str:month>/wish/", views.costs_report_wish, name="costs_report_wish"),
]
