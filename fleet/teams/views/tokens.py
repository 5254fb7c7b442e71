"""API tokens of a team. Only admins see them: what exists, and when it was last used, is theirs to know."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.forms import TokenForm
from fleet.teams.models import APIToken, Role, Scope
from fleet.teams.scrape_config import scrape_config
from fleet.teams.tokens import create_token, revoke_token, usable_tokens


@require_safe
@requires(Role.ADMIN)
def tokens(request: TeamRequest) -> HttpResponse:
    return draw(request, TokenForm())


def draw(request: TeamRequest, form: TokenForm, secret: str = "", status: int = 200) -> HttpResponse:
    mine = APIToken.objects.filter(team=request.team).select_related("created_by").order_by("-created_at")
    usable = usable_tokens(now=timezone.now()).values("pk")
    context = {
        "nav": "settings",
        "tab": "tokens",
        "form": form,
        "secret": secret,
        "tokens": mine.filter(pk__in=usable),
        "scrape_config": scrape_config(
            base_url=settings.PUBLIC_URL or request.build_absolute_uri("/"), path=reverse("api-metrics")
        ),
        "ended": mine.exclude(pk__in=usable)[:20],
    }
    return render(request, "settings/tokens.html", context, status=status)


@require_POST
@requires(Role.ADMIN)
@never_cache
def new_token(request: TeamRequest) -> HttpResponse:
    """Answers with the page that shows the secret: it is nowhere else."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return draw(request, form, status=422)
    lifetime = form.lifetime()
    _token, new = create_token(
        actor=Actor.of_page(request),
        team=request.team,
        name=form.cleaned_data["name"],
        scope=Scope(form.cleaned_data["scope"]),
        expires_at=timezone.now() + lifetime if lifetime else None,
    )
    return draw(request, TokenForm(), secret=new.secret, status=201)


@require_POST
@requires(Role.ADMIN)
def revoke(request: TeamRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(APIToken, pk=token_id, team=request.team)
    if revoke_token(actor=Actor.of_page(request), token=token):
        messages.success(request, _("The token does not work any more."))
    return redirect("tokens", request.team.slug)
