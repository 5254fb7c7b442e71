"""Settings, Agents: tokens that let machines in, the agents there are, and what a person has to settle."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from fleet.inventory.models import Instance
from fleet.inventory.reach import reach_problem
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.agents import (
    INTERVAL_CHOICES_SECONDS,
    AgentError,
    change_interval,
    keep_apart,
    move_agent,
    pause_agent,
    revoke_agent,
)
from fleet.telemetry.enrolment import create_enrolment_token, revoke_enrolment_token
from fleet.telemetry.forms import EnrolmentTokenForm, IntervalForm
from fleet.telemetry.ingest.bundle import install_line, shipped_version
from fleet.telemetry.machine_panel import agent_facts
from fleet.telemetry.matching import candidates
from fleet.telemetry.models import Agent, EnrolmentToken

# Four heartbeats: fewer may be lost on the way.
HEARD_WITHIN = timedelta(seconds=60)


@require_safe
def agents(request: TeamRequest) -> HttpResponse:
    return draw(request, EnrolmentTokenForm(team=request.team))


def draw(request: TeamRequest, form: EnrolmentTokenForm, line: str = "", status: int = 200) -> HttpResponse:
    found = [{"agent": agent, **agent_facts(agent)} for agent in agents_of(request)]
    context = {
        "nav": "settings",
        "tab": "agents",
        "form": form,
        "line": line,
        "operates": request.membership.can(Role.OPERATOR),
        "reach": reach_problem(settings.PUBLIC_URL),
        "tokens": usable_tokens(request),
        "agents": found,
        "reporting": sum(reports(row["agent"], now=timezone.now()) for row in found),
        "shipped_version": shipped_version(),
        "intervals": INTERVAL_CHOICES_SECONDS,
        "conflicts": [conflict_row(row["agent"], row["conflict"]) for row in found if row["conflict"]],
    }
    return render(request, "telemetry/agents.html", context, status=status)


def agents_of(request: TeamRequest) -> QuerySet[Agent]:
    mine = Agent.objects.filter(instance__team=request.team, instance__gone_at=None, revoked_at=None)
    return mine.select_related("instance").order_by("instance__name", "pk")


def reports(agent: Agent, *, now: datetime) -> bool:
    return agent.heartbeat_at is not None and now - agent.heartbeat_at < HEARD_WITHIN


def usable_tokens(request: TeamRequest) -> QuerySet[EnrolmentToken]:
    if not request.membership.can(Role.OPERATOR):
        return EnrolmentToken.objects.none()
    mine = EnrolmentToken.objects.filter(team=request.team, revoked_at=None, expires_at__gt=timezone.now())
    return mine.filter(uses__lt=F("max_uses")).select_related("instance", "created_by").order_by("expires_at")


def conflict_row(agent: Agent, words: str) -> dict[str, Any]:
    return {"agent": agent, "words": words, "candidates": candidates(agent)}


@require_POST
@requires(Role.OPERATOR)
@never_cache
def new_enrolment_token(request: TeamRequest) -> HttpResponse:
    """Answers with the page that shows the line: its token is nowhere else."""
    form = EnrolmentTokenForm(request.POST, team=request.team)
    if not form.is_valid():
        return draw(request, form, status=422)
    _token, secret = create_enrolment_token(
        actor=Actor.of_page(request),
        team=request.team,
        instance=form.cleaned_data["instance"],
        project=form.cleaned_data["project"],
        max_uses=form.cleaned_data["max_uses"],
        lifetime=form.lifetime(),
    )
    return draw(request, EnrolmentTokenForm(team=request.team), line=install_line(secret.secret), status=201)


@require_POST
@requires(Role.OPERATOR)
def end_enrolment_token(request: TeamRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(EnrolmentToken, pk=token_id, team=request.team)
    if revoke_enrolment_token(actor=Actor.of_page(request), token=token):
        messages.success(request, _("The token lets nobody in any more."))
    return redirect("agents", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def set_interval(request: TeamRequest, agent_id: int) -> HttpResponse:
    agent, form = _agent(request, agent_id), IntervalForm(request.POST)
    if form.is_valid():
        seconds = form.cleaned_data["interval_seconds"]
        change_interval(actor=Actor.of_page(request), agent=agent, interval_seconds=seconds)
        messages.success(request, _("%(name)s reads every %(n)d s from its next report on.") % _named(agent, n=seconds))
    else:
        messages.error(request, _("Choose one of the intervals offered."))
    return redirect("agents", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def set_paused(request: TeamRequest, agent_id: int) -> HttpResponse:
    agent, paused = _agent(request, agent_id), request.POST.get("paused") == "1"
    if pause_agent(actor=Actor.of_page(request), agent=agent, paused=paused):
        said = _("%(name)s pauses with its next report.") if paused else _("%(name)s reads again with its next report.")
        messages.success(request, said % _named(agent))
    return redirect("agents", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def end_agent(request: TeamRequest, agent_id: int) -> HttpResponse:
    agent = _agent(request, agent_id)
    if revoke_agent(actor=Actor.of_page(request), agent=agent):
        messages.success(request, _("Nothing more is taken from the agent on %(name)s.") % _named(agent))
    return redirect("agents", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def settle(request: TeamRequest, agent_id: int) -> HttpResponse:
    """`instance`: the listed machine that the agent is on; without it the two stay apart."""
    agent, actor, chosen = _agent(request, agent_id), Actor.of_page(request), request.POST.get("instance", "")
    try:
        if chosen:
            listed = Instance.objects.filter(team=request.team, pk=row_id(chosen))
            move_agent(actor=actor, agent=agent, instance=get_object_or_404(listed))
        else:
            keep_apart(actor=actor, agent=agent)
    except AgentError as error:
        messages.error(request, str(error))
    return redirect("agents", request.team.slug)


def _agent(request: TeamRequest, agent_id: int) -> Agent:
    return get_object_or_404(agents_of(request), pk=agent_id)


def row_id(text: str) -> int:
    """The id that `text` names, or 0, which no row has. Python refuses to read very long numbers."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _named(agent: Agent, **more: object) -> dict[str, object]:
    return {"name": agent.instance.name, **more}
