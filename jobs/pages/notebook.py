"""The token of a notebook, for those who may run things on its machine."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from fleet.inventory.credentials import CredentialError
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.models import Job, Node
from jobs.plans.notebook import show_token, way_to


@require_POST
@requires(Role.OPERATOR)
@never_cache
def job_notebook(request: TeamRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk, team=request.team)
    node = Node.objects.filter(attempt__job=job, rank=0).order_by("-attempt__number").first()
    try:
        token = show_token(actor=Actor.of_page(request), job=job)
    except CredentialError:
        token = ""
    context = {"nav": "jobs", "job": job, "token": token, "way": way_to(node, job.environment) if node else None}
    return render(request, "jobs/notebook.html", context)
