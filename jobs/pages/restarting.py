"""What it costs to start a server anew, before it is done; and doing it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from fleet.formats import duration_text
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.models import Job
from jobs.pages.attempts import attempt_of
from jobs.serving.restart import restart_server
from jobs.serving.standing import ServerFacts, facts_of


@dataclass(frozen=True, slots=True)
class RestartLoss:
    """`silent`: how long nobody answers, as its last start took; "" = it never became ready. `drops`: what is under way now; "" = not known."""

    silent: str
    drops: str

    @classmethod
    def of(cls, facts: ServerFacts) -> RestartLoss:
        took, latest = facts.load_seconds, facts.endpoint
        count = round(latest.requests_running or 0) if latest and latest.requests_running is not None else None
        said = ngettext("%(n)s answer under way", "%(n)s answers under way", count or 0)
        return cls(
            silent=_("about %(time)s without answers") % {"time": duration_text(took)} if took is not None else "",
            drops=said % {"n": count} if count is not None else "",
        )


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def job_restart(request: TeamRequest, pk: int) -> HttpResponse:
    """The question, and with POST the act. A script's request gets the question alone, for a dialog."""
    found = get_object_or_404(Job, pk=pk, team=request.team)
    if request.method != "POST":
        facts = facts_of(attempt_of(found, ""))
        if facts is None:
            raise Http404
        context = {"nav": "jobs", "job": found, "loss": RestartLoss.of(facts)}
        return render(request, "jobs/restart_dialog.html" if request.htmx else "jobs/restart.html", context)
    if restart_server(actor=Actor.of_page(request), job=found, now=timezone.now()):
        messages.success(request, _("It is asked to end, and begins again on the same machines."))
    else:
        messages.info(request, _("It does not run, or ends already."))
    return redirect("job", request.team.slug, pk)
