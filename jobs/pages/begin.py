"""Beginning a job: from nothing, or as another was."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.inventory.models import SshKey
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.manage import create_job
from jobs.book.models import Job
from jobs.book.order import JobRefused
from jobs.pages.forms import JobForm
from jobs.pages.serving_fields import PREFIX


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def job_new(request: TeamRequest) -> HttpResponse:
    """`?like=`: a job to begin with; its secrets have to be typed again."""
    like = request.GET.get("like", "")
    known = get_object_or_404(Job, pk=int(like), team=request.team) if like.isdecimal() and len(like) < 19 else None
    form = JobForm(request.POST or None, team=request.team, initial=initial_of(known) if known else None)
    if form.is_valid() and (job := begun(request, form, known)) is not None:
        messages.success(request, _("%(name)s is queued. Its machines are held.") % {"name": job.name})
        return redirect("job", request.team.slug, job.pk)
    context = {
        "nav": "jobs",
        "form": form,
        "like": known,
        "has_key": SshKey.objects.filter(team=request.team).exists(),
    }
    return render(request, "jobs/new.html", context, status=422 if form.errors else 200)


def begun(request: TeamRequest, form: JobForm, known: Job | None) -> Job | None:
    """None: it was refused, and the form says where."""
    try:
        return create_job(
            actor=Actor.of_page(request),
            team=request.team,
            order=form.order(),
            machines=list(form.cleaned_data["machines"]),
            now=timezone.now(),
            rerun_of=known,
        )
    except JobRefused as refusal:
        name = refusal.field.replace(".", "_")
        form.add_error(name if name in form.fields else None, str(refusal.text))
        return None


def initial_of(job: Job) -> dict[str, Any]:
    names = (
        "name",
        "kind",
        "command",
        "project",
        "repository",
        "revision",
        "data_path",
        "checkpoint_path",
        "processes_per_node",
        "retries",
        "resume_arguments",
        "when_done",
    )
    attempt = job.attempts.order_by("-number").first()
    machines = [node.instance_id for node in attempt.nodes.all()] if attempt else []
    pairs = "\n".join(f"{name}={value}" for name, value in job.environment.items())
    secrets = "\n".join(f"{name}=" for name in job.secret_names)
    serving = {f"{PREFIX}{name}": value for name, value in job.serving.items()}
    return (
        {name: getattr(job, name) for name in names}
        | serving
        | {
            "machines": machines,
            "environment": pairs,
            "secrets": secrets,
        }
    )
