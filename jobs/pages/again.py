"""Running a job again: the question, and with POST the act. What should be otherwise is changed in the form of a new job."""

from __future__ import annotations

import re

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.again import rerun_job
from jobs.book.models import Job
from jobs.book.order import JobRefused
from jobs.pages.attempts import attempt_of
from jobs.pages.stopping import rent_of

LONGEST_NAME = 120
_RUN = re.compile(r"(.*\S) r(\d{1,6})")


def next_name(name: str) -> str:
    """Of "vision r2" it is "vision r3", of "vision" "vision r2"."""
    found = _RUN.fullmatch(name)
    stem, number = (found[1], int(found[2]) + 1) if found else (name, 2)
    tail = f" r{number}"
    return f"{stem[: LONGEST_NAME - len(tail)]}{tail}"


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def job_again(request: TeamRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Job, pk=pk, team=request.team)
    if request.method != "POST":
        nodes = list(attempt_of(found, "").nodes.select_related("instance").order_by("rank"))
        context = {"nav": "jobs", "job": found, "nodes": nodes, "rent": rent_of(nodes), "name": next_name(found.name)}
        return render(request, "jobs/again_dialog.html" if request.htmx else "jobs/again.html", context)
    return _begin(request, found)


def _begin(request: TeamRequest, found: Job) -> HttpResponse:
    """What is refused leads to the form, where it can be mended."""
    try:
        made = rerun_job(
            actor=Actor.of_page(request),
            job=found,
            machines=None,
            secrets=None,
            changes={"name": next_name(found.name)},
            now=timezone.now(),
        )
    except JobRefused as refusal:
        messages.error(request, str(refusal.text))
        return redirect(f"{reverse('job_new', args=[request.team.slug])}?like={found.pk}")
    messages.success(request, _("%(name)s is queued. Its machines are held.") % {"name": made.name})
    return redirect("job", request.team.slug, made.pk)
