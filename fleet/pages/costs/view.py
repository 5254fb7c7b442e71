"""Costs: a month of money, composed of what every slice has to say about it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from fleet import panels
from fleet.costs.month import Month
from fleet.teams.access import TeamRequest

MONTHS_OFFERED = 13


def costs(request: TeamRequest) -> HttpResponse:
    """`?month=YYYY-MM`; anything else is the present month."""
    month = Month.of(request.team, now=timezone.now(), name=request.GET.get("month", ""))
    return render(
        request,
        "costs/costs.html",
        {"nav": "costs", "tab": "costs", "month": month, "months": months_until(month), "panels": panels.costs_panels},
    )


def months_until(month: Month) -> list[Month]:
    """The present month and the twelve before it."""
    found = [Month(month.today.replace(day=1), month.today, month.zone)]
    while len(found) < MONTHS_OFFERED:
        found.append(found[-1].before)
    return found
