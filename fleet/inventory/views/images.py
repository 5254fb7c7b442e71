"""Images: what machines start from, and which machines do."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Prefetch, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from fleet.inventory.models import Image, Instance, ProviderAccount
from fleet.teams.access import TeamRequest

PER_PAGE = 100


@require_safe
def images(request: TeamRequest) -> HttpResponse:
    """A deleted image stays in the table for as long as a machine runs from it."""
    used = Prefetch("instances", Instance.objects.filter(gone_at=None).order_by("name"), to_attr="users")
    accounts = ProviderAccount.objects.filter(team=request.team, disconnected_at=None, images__isnull=False).distinct()
    wanted = request.GET.get("account", "")
    rows = (
        Image.objects.filter(Q(gone_at=None) | Q(instances__gone_at=None, instances__isnull=False))
        .filter(account__team=request.team, account__disconnected_at=None)
        .select_related("account")
        .prefetch_related(used)
        .order_by("account__name", "name", "pk")
        .distinct()
    )
    chosen = next((account for account in accounts if str(account.pk) == wanted), None)
    page = Paginator(rows.filter(account=chosen) if chosen else rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {"nav": "images", "page": page, "accounts": accounts.order_by("name"), "chosen": chosen}
    return render(request, "inventory/images.html", context)
