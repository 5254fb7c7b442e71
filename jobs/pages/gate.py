"""The gateway before a job that serves: its limits, its token, and how callers reach it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.models import Job
from jobs.gateway.manage import GatewayRefused, make_token, set_gateway
from jobs.gateway.models import Gateway
from jobs.gateway.nginx import find_nginx
from jobs.gateway.words import MARKS, state_text
from jobs.pages.gate_form import GatewayForm, initial_of, suggested
from jobs.pages.loading import serving_job

# Its process writes every second.
SILENT = timedelta(seconds=30)


@require_http_methods(["GET", "HEAD", "POST"])
def job_gateway(request: TeamRequest, pk: int) -> HttpResponse:
    job = serving_job(request, pk)
    gateway = Gateway.objects.filter(job=job).first()
    form = GatewayForm(request.POST or None, job=job, initial=initial_of(job, gateway))
    if form.is_valid() and is_set(request, job, form):
        messages.success(request, _("The gateway is set; it changes within seconds."))
        return redirect("job_gateway", request.team.slug, pk)
    return shown(request, job, gateway, form)


@require_POST
@requires(Role.OPERATOR)
def job_gateway_token(request: TeamRequest, pk: int) -> HttpResponse:
    """The page with the new token on it, this once."""
    job = serving_job(request, pk)
    gateway = get_object_or_404(Gateway.objects.select_related("job__team"), job=job)
    secret = make_token(actor=Actor.of_page(request), gateway=gateway).secret
    gateway.refresh_from_db()
    return shown(request, job, gateway, GatewayForm(job=job, initial=initial_of(job, gateway)), secret=secret)


def shown(
    request: TeamRequest, job: Job, gateway: Gateway | None, form: GatewayForm, *, secret: str = ""
) -> HttpResponse:
    state = state_of(gateway) if gateway else ""
    context: dict[str, Any] = {
        "nav": "jobs",
        "job": job,
        "gateway": gateway,
        "form": form,
        "secret": secret,
        "state": state_text(state),
        "mark": MARKS.get(state, "stopped"),
        "base": f"{settings.GATEWAY_URL}/{gateway.name}" if gateway else "",
        "has_port": bool(settings.GATEWAY_PORT),
        "has_nginx": find_nginx() is not None,
        "suggested": bool(not gateway and suggested(job)),
        "waiting": gateway.later.filter(state__in=("queued", "running")).count() if gateway else 0,
        "may_act": request.membership.can(Role.OPERATOR),
    }
    response = render(request, "jobs/gateway.html", context, status=422 if form.errors else 200)
    if secret:
        response["Cache-Control"] = "no-store"
    return response


def state_of(gateway: Gateway) -> str:
    if not gateway.enabled:
        return "closed"
    if not gateway.token_hash:
        return "no_token"
    if gateway.seen_at is None or timezone.now() - gateway.seen_at > SILENT:
        return "silent"
    return gateway.state or "new"


def is_set(request: TeamRequest, job: Job, form: GatewayForm) -> bool:
    """False: it was refused, and the form says where."""
    try:
        set_gateway(
            actor=Actor.of_page(request),
            job=job,
            limits=form.limits(),
            enabled=form.cleaned_data["enabled"],
            now=timezone.now(),
        )
    except GatewayRefused as refusal:
        form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal.text))
        return False
    return True
