from __future__ import annotations

from django.urls import path

from fleet.costs.bills import import_views, views

team_urlpatterns = [
    path("costs/bills/", views.bills, name="bills"),
    path("costs/bills/import/", import_views.bill_import, name="bill_import"),
    path("costs/bills/import/<int:pk>/", import_views.bill_preview, name="bill_preview"),
    path("costs/bills/<int:pk>/", views.bill_month, name="bill_month"),
    path("costs/bills/<int:pk>/accept/", views.bill_accept, name="bill_accept"),
    path("costs/bills/ask/<int:account_id>/", views.bill_ask, name="bill_ask"),
    path("costs/adjustments/<int:pk>/reverse/", views.adjustment_reverse, name="adjustment_reverse"),
]
