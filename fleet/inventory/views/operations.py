"""What providers were asked to do: open first, then what ended; and one of them with every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.inventory.act_forms import AbandonForm
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.act_words import VERBS
from fleet.inventory.operations.closing import abandon_operation
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind, OperationState
from fleet.inventory.operations.progress import Progress
from fleet.inventory.operations.timeline import event_lines
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reading of the address; what makes no sense in it is left out."""

    state: str = ""
    kind: str = ""
    account: int | None = None
    search: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        account = query.get("account", "")
        return cls(
            state=word if (word := query.get("state", "")) in {"open", *OperationState.values} else "",
            kind=word if (word := query.get("kind", "")) in OperationKind.values else "",
            account=int(account) if account.isdecimal() and len(account) < 19 else None,
            search=query.get("q", "").strip()[:200],
        )

    @property
    def filters(self) -> bool:
        return bool(self.state or self.kind or self.account or self.search)

    def narrow(self, rows: QuerySet[Operation]) -> QuerySet[Operation]:
        if self.state:
            rows = rows.filter(state__in=OPEN_STATES if self.state == "open" else [self.state])
        if self.kind:
            rows = rows.filter(kind=self.kind)
        if self.account:
            rows = rows.filter(account=self.account)
        return rows.filter(instance__name__icontains=self.search) if self.search else rows


@require_safe
def operations(request: TeamRequest) -> HttpResponse:
    now, wanted = timezone.now(), Wanted.of(request.GET)
    ended = Case(When(state__in=OPEN_STATES, then=Value(0)), default=Value(1))
    rows = wanted.narrow(rows_of(request)).annotate(ended=ended).order_by("ended", "-requested_at", "-pk")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    lines = [Progress(operation, now) for operation in page]
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "nav": "operations",
        "wanted": wanted,
        "page": page,
        "lines": lines,
        "any_open": any(line.is_open for line in lines),
        "query": query.urlencode(),
        "kinds": list(VERBS.items()),
        "accounts": accounts_with_operations(request),
    }
    template = "inventory/operations/list_rows.html" if request.htmx else "inventory/operations/list.html"
    return render(request, template, context)


@require_safe
def operation(request: TeamRequest, pk: int) -> HttpResponse:
    """With `?follow=1` a launch becomes the page of its machine as soon as that is known."""
    found = get_object_or_404(rows_of(request), pk=pk)
    if request.GET.get("follow") and found.kind == OperationKind.LAUNCH and found.instance_id:
        return go_on(request, found.instance_id)
    template = "inventory/operations/one_live.html" if request.htmx else "inventory/operations/one.html"
    return render(request, template, one_context(request, found, AbandonForm()))


def go_on(request: TeamRequest, instance_id: int) -> HttpResponse:
    answer = redirect("instance", request.team.slug, instance_id)
    # A script's request would follow a redirect and put the whole page into its place.
    return HttpResponse(headers={"HX-Redirect": answer.headers["Location"]}) if request.htmx else answer


@require_POST
@requires(Role.OPERATOR)
def operation_abandon(request: TeamRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(rows_of(request), pk=pk)
    form = AbandonForm(request.POST)
    if not form.is_valid():
        return render(request, "inventory/operations/one.html", one_context(request, found, form), status=422)
    if abandon_operation(actor=Actor.of_page(request), operation=found, reason=form.cleaned_data["reason"]):
        messages.success(request, _("It is given up. The machine goes on being shown as readings show it."))
    return redirect("operation", request.team.slug, pk)


def one_context(request: TeamRequest, found: Operation, form: AbandonForm) -> dict[str, Any]:
    return {
        "nav": "operations",
        "operation": found,
        "progress": Progress(found, timezone.now()),
        "events": event_lines(found),
        "form": form,
        "follow": bool(request.GET.get("follow")),
        "may_act": request.membership.can(Role.OPERATOR),
    }


def rows_of(request: TeamRequest) -> QuerySet[Operation]:
    rows = Operation.objects.filter(team=request.team).select_related("team", "instance", "account", "project")
    return rows.defer("account__credentials", "account__options", "account__check_results")


def accounts_with_operations(request: TeamRequest) -> QuerySet[ProviderAccount]:
    return ProviderAccount.objects.filter(team=request.team, operations__isnull=False).distinct().order_by("name")
