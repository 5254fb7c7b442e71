"""The load tests of a job that serves: the newest with its result, beginning one, calling it off."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from jobs.book.models import Job
from jobs.loadtest.manage import LoadRefused, begin_load_test, cancel_load_test
from jobs.loadtest.models import OPEN_LOAD_STATES, LoadTest
from jobs.pages.load_form import LoadForm, initial_of
from jobs.pages.load_shown import LoadLine

EARLIER_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
def job_load(request: TeamRequest, pk: int) -> HttpResponse:
    """`?test=`: an earlier one."""
    job = serving_job(request, pk)
    test = asked_test(job, request.GET.get("test", ""))
    initial = initial_of(LoadLine(test).plan, test.key_name) if test else None
    form = LoadForm(request.POST or None, job=job, initial=initial)
    if form.is_valid() and begun(request, job, form):
        messages.success(request, _("The load test is queued."))
        return redirect("job_load", request.team.slug, pk)
    context = {
        "nav": "jobs",
        "job": job,
        "load": LoadLine(test) if test else None,
        "form": form,
        "earlier": [LoadLine(one) for one in job.load_tests.order_by("-asked_at", "-pk")[:EARLIER_SHOWN]],
        "may_act": request.membership.can(Role.OPERATOR),
    }
    page = "jobs/load/live.html" if request.htmx else "jobs/load/page.html"
    return render(request, page, context, status=422 if form.errors else 200)


def serving_job(request: TeamRequest, pk: int) -> Job:
    job = get_object_or_404(Job, pk=pk, team=request.team)
    if not job.serving:
        raise Http404
    return job


def asked_test(job: Job, asked: str) -> LoadTest | None:
    """The one that is asked for, else the newest."""
    rows = job.load_tests.prefetch_related("stages").order_by("-asked_at", "-pk")
    known = rows.filter(pk=int(asked)).first() if asked.isdecimal() and len(asked) < 19 else None
    return known or rows.first()


def begun(request: TeamRequest, job: Job, form: LoadForm) -> bool:
    """False: it was refused, and the form says where."""
    try:
        begin_load_test(
            actor=Actor.of_page(request),
            job=job,
            plan=form.plan(),
            key_name=form.cleaned_data["key_name"],
            now=timezone.now(),
        )
    except LoadRefused as refusal:
        field = refusal.field.removesuffix("_seconds") if refusal.field.startswith("promise") else refusal.field
        form.add_error(field if field in form.fields else None, str(refusal.text))
        return False
    return True


@require_POST
@requires(Role.OPERATOR)
def job_load_cancel(request: TeamRequest, pk: int) -> HttpResponse:
    test: Any = serving_job(request, pk).load_tests.filter(state__in=OPEN_LOAD_STATES).first()
    if test is not None and cancel_load_test(actor=Actor.of_page(request), test=test, now=timezone.now()):
        messages.success(request, _("The load test is called off."))
    else:
        messages.info(request, _("It has ended already."))
    return redirect("job_load", request.team.slug, pk)
