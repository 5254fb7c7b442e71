"""The same act on many machines: one question for all of them, and a page that follows each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from fleet.inventory.act_forms import BulkForm
from fleet.inventory.models import Instance
from fleet.inventory.operations import act_words
from fleet.inventory.operations.batches import MAX_AT_ONCE, Plan, act_on_many, operations_of, plan_of
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.progress import Progress
from fleet.providers.errors import Invalid
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

BULK_KINDS = (OperationKind.START, OperationKind.STOP, OperationKind.TERMINATE)
# Of the session: why machines of the last few batches were left out.
LEFT_OUT, BATCHES_KEPT = "left_out", 5


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def instances_act(request: TeamRequest) -> HttpResponse:
    """GET asks about the machines that the address names; POST begins those that can be begun."""
    sent = request.POST if request.method == "POST" else request.GET
    if "kind" not in sent:
        return redirect("instances", request.team.slug)
    plan = planned(request, sent)
    form = BulkForm(request.POST if request.method == "POST" else None, phrase=phrase_of(plan))
    if sent is request.POST and operations_of(request.team, sent.get("key", "-")).exists():
        return redirect("instances_acted", request.team.slug, sent["key"])
    if plan.possible and form.is_valid():
        batch = form.cleaned_data["key"]
        refused = act_on_many(
            actor=Actor.of_page(request),
            instances=[told.instance for told in plan.possible],
            kind=plan.kind,
            batch=batch,
            accept_loss=bool(form.phrase),
        )
        remember(request, batch, {**{told.instance.pk: why for told, why in plan.impossible}, **refused})
        return redirect("instances_acted", request.team.slug, batch)
    context = {"nav": "instances", "plan": plan, "form": form, "too_many": len(chosen_ids(sent)) > MAX_AT_ONCE}
    return render(request, "inventory/operations/bulk.html", context, status=422 if form.errors else 200)


def planned(request: TeamRequest, sent: QueryDict) -> Plan:
    """Raises Http404 for an act that cannot be asked of many machines, or for one of another team's."""
    kind, ids = sent.get("kind", ""), chosen_ids(sent)[:MAX_AT_ONCE]
    if kind not in BULK_KINDS:
        raise Http404
    rows = (
        Instance.objects.filter(pk__in=ids, team=request.team).select_related("account", "team").order_by("name", "pk")
    )
    machines = list(rows)
    if len(machines) != len(ids):
        raise Http404
    try:
        return plan_of(machines, OperationKind(kind), now=timezone.now())
    except Invalid:
        raise Http404 from None


def chosen_ids(sent: QueryDict) -> list[int]:
    return sorted({int(word) for word in sent.getlist("machine") if word.isdecimal() and len(word) < 19})


def phrase_of(plan: Plan) -> str:
    """What has to be typed; "" where nothing is lost."""
    return f"{plan.kind} {len(plan.possible)}" if plan.loses else ""


def remember(request: TeamRequest, batch: str, left_out: dict[int, str]) -> None:
    kept = dict(list(request.session.get(LEFT_OUT, {}).items())[1 - BATCHES_KEPT :])
    request.session[LEFT_OUT] = {**kept, batch: {str(pk): why for pk, why in left_out.items()}}


@dataclass(frozen=True, slots=True)
class Row:
    instance: Instance | None
    name: str
    progress: Progress | None = None
    left_out: str = ""


@require_safe
@requires(Role.OPERATOR)
def instances_acted(request: TeamRequest, batch: str) -> HttpResponse:
    """What became of each machine; asks again by itself while one is open."""
    now = timezone.now()
    found = [Progress(operation, now) for operation in operations_of(request.team, batch)]
    left_out = request.session.get(LEFT_OUT, {}).get(batch, {})
    if not found and not left_out:
        raise Http404
    rows = [Row(told.operation.instance, told.operation.machine_name, told) for told in found]
    missing = Instance.objects.filter(pk__in=list(left_out), team=request.team).order_by("name")
    rows += [Row(machine, machine.name, left_out=left_out[str(machine.pk)]) for machine in missing]
    context = {"nav": "instances", "rows": rows, "batch": batch, **counts(found), "left_out": len(left_out)}
    template = "inventory/operations/bulk_rows.html" if request.htmx else "inventory/operations/bulk_done.html"
    return render(request, template, context)


def counts(found: list[Progress]) -> dict[str, Any]:
    kind = found[0].operation.kind if found else ""
    return {
        "title": act_words.verb(kind) if kind else _("Nothing was begun"),
        "open": sum(told.is_open for told in found),
        "proved": sum(told.operation.state == "proved" for told in found),
        "failed": sum(told.operation.state == "failed" for told in found),
    }
