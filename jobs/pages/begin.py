"""Beginning a job: from nothing, as another was, or from a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.inventory.models import SshKey
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.manage import create_job
from jobs.book.models import Job
from jobs.book.order import JobRefused, Order
from jobs.pages.forms import JobForm
from jobs.pages.starting import beginning_of
from jobs.plans.draft import PlanRefused
from jobs.plans.refusing import refuse_plan
from jobs.uploads.keep import keep_upload
from jobs.uploads.refusing import UploadRefused


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def job_new(request: TeamRequest) -> HttpResponse:
    """`?like=`: a job to begin with; `?plan=…&launcher=…`: a plan of the planner."""
    try:
        start = beginning_of(request)
    except PlanRefused as refusal:
        messages.error(request, str(refusal.text))
        return redirect("planner", request.team.slug)
    form = JobForm(request.POST or None, request.FILES or None, team=request.team, start=start)
    if form.is_valid() and (job := begun(request, form, start.like)) is not None:
        messages.success(request, _("%(name)s is queued. Its machines are held.") % {"name": job.name})
        return redirect("job", request.team.slug, job.pk)
    context = {
        "nav": "jobs",
        "form": form,
        "like": start.like,
        "draft": start.draft,
        "is_notebook": start.is_notebook,
        "has_key": SshKey.objects.filter(team=request.team).exists(),
    }
    return render(request, "jobs/new.html", context, status=422 if form.errors else 200)


def begun(request: TeamRequest, form: JobForm, known: Job | None) -> Job | None:
    """None: it was refused, and the form says where."""
    order, machines = form.order(), list(form.cleaned_data["machines"])
    try:
        refuse_plan(order, machines)
        order = with_upload(request, order, form.cleaned_data["upload"])
        return create_job(
            actor=Actor.of_page(request),
            team=request.team,
            order=order,
            machines=machines,
            now=timezone.now(),
            rerun_of=known,
        )
    except (JobRefused, UploadRefused) as refusal:
        name = refusal.field.replace(".", "_")
        form.add_error(name if name in form.fields else None, str(refusal.text))
        return None


def with_upload(request: TeamRequest, order: Order, file: UploadedFile[Any] | None) -> Order:
    """The files that were chosen, in place of those of the job that it is like. Raises UploadRefused."""
    if file is None or file.file is None:
        return order
    upload = keep_upload(
        actor=Actor.of_page(request),
        team=request.team,
        name=file.name or "",
        file=file.file,
        size_bytes=file.size or 0,
        now=timezone.now(),
    )
    return replace(order, upload=upload)
