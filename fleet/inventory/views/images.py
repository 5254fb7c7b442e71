"""Images: what machines start from, what lies on it, where it runs, and which machines use it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.views.decorators.http import require_safe

from fleet.inventory.environments.listing import Wanted, accounts_with_images, chosen, rows_of, things_of
from fleet.inventory.environments.places import asked_place, place_context
from fleet.inventory.environments.words import ORIGINS
from fleet.teams.access import TeamRequest
from fleet.teams.fields import one_line
from fleet.teams.models import Role

PER_PAGE = 100


@require_safe
def images(request: TeamRequest) -> HttpResponse:
    accounts = accounts_with_images(request.team)
    origin = request.GET.get("origin", "")
    wanted = Wanted(
        account=chosen(accounts, request.GET.get("account", "")),
        origin=origin if origin in ORIGINS else "",
        text=one_line(request.GET.get("q", ""))[:100],
    )
    place = asked_place(request)
    page = Paginator(things_of(request.team, wanted), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "nav": "images",
        "page": page,
        "rows": rows_of(list(page.object_list), place),
        "accounts": accounts,
        "wanted": wanted,
        "origins": origin_links(request),
        "query": query_without(request, "page"),
        "may_change": request.membership.can(Role.OPERATOR),
        **place_context(request, place),
    }
    return render(request, "inventory/images.html", context)


def origin_links(request: TeamRequest) -> list[dict[str, Any]]:
    """Each kind with the address that shows it and keeps the rest of the question."""
    kept = query_without(request, "page", "origin")
    words: list[tuple[str, str | Promise]] = list(ORIGINS.items())
    return [{"name": name, "label": word, "query": f"{kept}&origin={name}".lstrip("&")} for name, word in words]


def query_without(request: TeamRequest, *names: str) -> str:
    return urlencode([(name, value) for name, value in request.GET.items() if value and name not in names])
