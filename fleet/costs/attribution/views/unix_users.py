"""Whose the users of machines' operating systems are, for machines that are split by measured use."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.costs.attribution.forms import UnixUserForm
from fleet.costs.attribution.models import UnixUse, UnixUser
from fleet.costs.attribution.sharing import map_unix_user, unmap_unix_user
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role, Team

SEEN = timedelta(days=30)
SEEN_SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
def unix_users(request: TeamRequest) -> HttpResponse:
    form = UnixUserForm(request.POST or None, team=request.team, initial={"name": request.GET.get("name", "")})
    if form.is_valid() and _mapped(request, form):
        messages.success(request, _("Saved; hours from this one on go to them."))
        return redirect("costs_rules_users", request.team.slug)
    context = {
        "nav": "costs",
        "tab": "rules",
        "form": form,
        "mappings": UnixUser.objects.filter(team=request.team)
        .select_related("owner", "project", "instance")
        .order_by("name", "instance__name"),
        "strangers": strangers(request.team),
        "may_change": request.membership.can(Role.OPERATOR),
    }
    return render(request, "costs/unix_users.html", context, status=422 if form.errors else 200)


@require_POST
@requires(Role.OPERATOR)
def unix_user_remove(request: TeamRequest, pk: int) -> HttpResponse:
    mapping = get_object_or_404(UnixUser.objects.select_related("team"), pk=pk, team=request.team)
    if unmap_unix_user(actor=Actor.of_page(request), mapping=mapping):
        messages.success(request, _("Their use is nobody's from this hour on."))
    return redirect("costs_rules_users", request.team.slug)


def strangers(team: Team) -> list[tuple[str, float]]:
    """Users that were seen lately and are mapped nowhere, with their GPU-hours, the most first."""
    known = UnixUser.objects.filter(team=team).values("name")
    seen = UnixUse.objects.filter(instance__team=team, hour__gte=timezone.now() - SEEN).exclude(unix_user="")
    sums = seen.exclude(unix_user__in=known).values("unix_user").annotate(seconds=Sum("gpu_seconds"))
    return [(row["unix_user"], row["seconds"] / 3600) for row in sums.order_by("-seconds")[:SEEN_SHOWN]]


def _mapped(request: TeamRequest, form: UnixUserForm) -> bool:
    try:
        map_unix_user(actor=Actor.of_page(request), team=request.team, **form.asked())
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True
