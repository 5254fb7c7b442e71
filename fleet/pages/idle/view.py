"""Idle: what rent buys nothing now, which machines, and what is about to be done about it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from fleet import panels
from fleet.teams.access import TeamRequest


def idle(request: TeamRequest) -> HttpResponse:
    return render(request, "idle/idle.html", {"nav": "idle", "tab": "idle", "panels": panels.idle_panels})
