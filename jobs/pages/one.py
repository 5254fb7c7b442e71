"""One job: how far it is, what was found, its machines, its log and every step; and what may be done with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import confirm_host_key
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role, Team
from jobs.book.manage import stop_job
from jobs.book.models import Attempt, Job, Node
from jobs.logs.read import whole_log
from jobs.pages.attempts import attempt_of
from jobs.pages.checkpoints import newest_checkpoint
from jobs.pages.compare import candidates
from jobs.pages.money import cost_stats
from jobs.pages.panels import PANELS
from jobs.pages.shown import job_lines, jobs_of
from jobs.pages.stopping import consequences_of
from jobs.pages.summary import newest_figures, pace_now, progress_of, sentence_of, stats_of


@require_safe
def job(request: TeamRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request.team), pk=pk)
    return render(request, "jobs/job_live.html" if request.htmx else "jobs/job.html", context_of(request, found))


def context_of(request: TeamRequest, found: Job) -> dict[str, Any]:
    now, attempt = timezone.now(), attempt_of(found, request.GET.get("attempt", ""))
    nodes = list(attempt.nodes.select_related("instance").order_by("rank"))
    figures = newest_figures(attempt)
    progress = progress_of(attempt, figures)
    return {
        "nav": "jobs",
        "job": found,
        "line": job_lines([found], now)[0],
        "attempt": attempt,
        "attempts": list(found.attempts.order_by("number")),
        "sentence": sentence_of(found, nodes, partial(address_of, request.team), now),
        "progress": progress,
        "checkpoint": newest_checkpoint(found, attempt) if progress else None,
        "stats": [*stats_of(found, figures, pace_now(attempt), now), *cost_stats(found, now)],
        "candidates": candidates(found),
        "compares": "with" in request.GET,
        "panels": drawn_panels(request, found, attempt),
        "may_act": request.membership.can(Role.OPERATOR),
    }


def address_of(team: Team, instance_id: int) -> str:
    return reverse("instance", args=[team.slug, instance_id])


@dataclass(frozen=True, slots=True)
class DrawnPanel:
    name: str
    template: str
    keeps: bool
    context: dict[str, Any]


def drawn_panels(request: TeamRequest, found: Job, attempt: Attempt) -> dict[str, list[DrawnPanel]]:
    """Those that have something to show, by their place."""
    drawn: dict[str, list[DrawnPanel]] = {"main": [], "side": [], "foot": []}
    for panel in PANELS:
        if (context := panel.context(request, found, attempt)) is not None:
            drawn[panel.place].append(DrawnPanel(panel.name, panel.template, panel.keeps, context))
    return drawn


@require_safe
def job_log(request: TeamRequest, pk: int, rank: int) -> StreamingHttpResponse:
    """All that is kept of one machine's log of the newest attempt, as a file."""
    found = get_object_or_404(Job, pk=pk, team=request.team)
    node = get_object_or_404(Node, attempt=attempt_of(found, request.GET.get("attempt", "")), rank=rank)
    name = f"{slugify(found.name) or 'job'}-{rank}.log"
    return StreamingHttpResponse(
        _parts(node),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"},
    )


def _parts(node: Node) -> Iterator[bytes]:
    yield from whole_log(node)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def job_stop(request: TeamRequest, pk: int) -> HttpResponse:
    """The question, and with POST the act. A script's request gets the question alone, for a dialog."""
    found = get_object_or_404(Job, pk=pk, team=request.team)
    now = timezone.now()
    if request.method != "POST":
        context = {"nav": "jobs", "job": found, "told": consequences_of(found, attempt_of(found, ""), now)}
        return render(request, "jobs/stop_dialog.html" if request.htmx else "jobs/stop.html", context)
    if stop_job(actor=Actor.of_page(request), job=found, now=now):
        messages.success(request, _("It is asked to end; what does not listen is ended after 20 seconds."))
    else:
        messages.info(request, _("It has ended already, or is being stopped."))
    return redirect("job", request.team.slug, pk)


@require_POST
@requires(Role.OPERATOR)
def job_trust(request: TeamRequest, pk: int, rank: int) -> HttpResponse:
    """Pins the host key whose fingerprint the page showed."""
    found = get_object_or_404(Job, pk=pk, team=request.team)
    node = get_object_or_404(Node.objects.select_related("instance__team"), attempt=attempt_of(found, ""), rank=rank)
    host = SshHost.objects.filter(instance=node.instance).exclude(offered="").first()
    if host is None:
        raise Http404
    if confirm_host_key(actor=Actor.of_page(request), host=host, shown=request.POST.get("shown", "")):
        messages.success(request, _("The host key is confirmed."))
        Attempt.objects.filter(pk=node.attempt_id).update(next_at=timezone.now())
    else:
        messages.error(request, _("The machine has shown another key since. Compare again."))
    return redirect("job", request.team.slug, pk)
