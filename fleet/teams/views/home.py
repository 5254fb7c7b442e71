from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from fleet.teams.models import Membership, User


def home(request: HttpRequest) -> HttpResponse:
    """The team a person joined first, or the page that says they are in none."""
    assert isinstance(request.user, User)
    membership = Membership.objects.filter(user=request.user).select_related("team").order_by("created_at").first()
    if membership is None:
        return render(request, "pages/no_team.html")
    return redirect("overview", membership.team.slug)


def account(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/no_team.html")
