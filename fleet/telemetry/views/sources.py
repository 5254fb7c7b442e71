"""Settings, Sources: the team's own Prometheus servers, and which machines their labels stand for."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.scrape.words import failure_text
from fleet.telemetry.sources.forms import ChosenMachineForm, KnownSourceForm, NewSourceForm
from fleet.telemetry.sources.manage import SourceError, add_source, choose_machine, remove_source, update_source
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine

# More labels than this are no list that a person reads.
MOST_LABELS = 500


@require_http_methods(["GET", "HEAD", "POST"])
def sources(request: TeamRequest) -> HttpResponse:
    """Everybody of the team sees them; who operates adds."""
    form = NewSourceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        hours = form.cleaned_data["history_hours"]
        token = form.cleaned_data["token"]
        try:
            source = add_source(
                actor=Actor.of_page(request), team=request.team, words=form.words(), token=token, history_hours=hours
            )
        except SourceError as error:
            form.add_error(error.field, str(error.text))
        else:
            messages.success(request, _("Added; it is read within seconds."))
            return redirect("source_edit", request.team.slug, source.pk)
    return _draw(request, "telemetry/sources.html", form, sources=[_row(source) for source in _counted(request)])


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def source_edit(request: TeamRequest, source_id: int) -> HttpResponse:
    source = _source(request, source_id)
    form = KnownSourceForm(request.POST or None, source=source, initial=KnownSourceForm.initial_of(source))
    if request.method == "POST" and form.is_valid():
        enabled = form.cleaned_data["enabled"]
        try:
            update_source(
                actor=Actor.of_page(request),
                source=source,
                words=form.words(),
                enabled=enabled,
                token=form.typed_token(),
            )
        except SourceError as error:
            form.add_error(error.field, str(error.text))
        else:
            messages.success(request, _("Saved."))
            return redirect("source_edit", request.team.slug, source_id)
    rows = source.machines.select_related("instance").order_by("instance__name", "label")[:MOST_LABELS]
    listed = Instance.objects.filter(team=request.team, gone_at=None).order_by("name")
    return _draw(request, "telemetry/source.html", form, **_row(source), rows=rows, listed=listed)


@require_POST
@requires(Role.OPERATOR)
def source_remove(request: TeamRequest, source_id: int) -> HttpResponse:
    if remove_source(actor=Actor.of_page(request), source=_source(request, source_id)):
        messages.success(request, _("Removed; what it gave stays."))
    return redirect("sources", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def source_machine(request: TeamRequest, row_id: int) -> HttpResponse:
    mine = SourceMachine.objects.filter(source__team=request.team).select_related("source__team")
    row = get_object_or_404(mine, pk=row_id)
    form = ChosenMachineForm(request.POST, team=request.team)
    if form.is_valid():
        choose_machine(actor=Actor.of_page(request), row=row, instance=form.cleaned_data["instance"])
        messages.success(request, _("Saved; new samples go there."))
    else:
        messages.error(request, _("Choose a machine of this team."))
    return redirect("source_edit", request.team.slug, row.source_id)


def _counted(request: TeamRequest) -> Any:
    """With how many labels they have, and how many of them a machine."""
    own = PrometheusSource.objects.filter(team=request.team).order_by("name")
    known = Q(machines__instance__isnull=False)
    return own.annotate(labels=Count("machines"), matched=Count("machines", filter=known))


def _source(request: TeamRequest, source_id: int) -> PrometheusSource:
    mine = PrometheusSource.objects.filter(team=request.team).select_related("team")
    return get_object_or_404(mine, pk=source_id)


def _row(source: PrometheusSource) -> dict[str, Any]:
    return {"source": source, "failure": failure_text(source)}


def _draw(request: TeamRequest, template: str, form: Any, **more: Any) -> HttpResponse:
    operates = request.membership.can(Role.OPERATOR)
    context = {"nav": "settings", "tab": "sources", "form": form, "operates": operates, **more}
    return render(request, template, context, status=422 if form.errors else 200)
