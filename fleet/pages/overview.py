from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from fleet import panels
from fleet.teams.access import TeamRequest


def overview(request: TeamRequest) -> HttpResponse:
    return render(request, "pages/overview.html", {"nav": "overview", "panels": panels.overview_panels})
