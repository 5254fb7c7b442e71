"""Cleanup: what costs money and nobody may know of. Nothing is ended from here but by the pages that ask first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from fleet.inventory.doubt import declare_gone
from fleet.inventory.models import Instance
from fleet.pages.cleanup_lines import Kind, Line, Total, cleanup_lines, total
from fleet.pages.cleanup_words import SAYS, TITLES, advice, evidence, may_end
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.fields import LineField
from fleet.teams.models import Role

PAGE_SIZE = 100


class GoneForm(forms.Form):
    instance = forms.ModelMultipleChoiceField(Instance.objects.none(), label=_("Machines"))
    reason = LineField(
        label=_("How do you know?"),
        max_length=200,
        help_text=_("kept in the audit log, such as: deleted in the console"),
    )

    def __init__(self, *args: Any, team_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.fields["instance"]
        assert isinstance(chosen, forms.ModelMultipleChoiceField)
        chosen.queryset = Instance.objects.filter(team=team_id, gone_at=None, doubted_since__isnull=False)


@require_safe
def cleanup(request: TeamRequest) -> HttpResponse:
    return render(request, "pages/cleanup.html", context_of(request))


def context_of(request: TeamRequest) -> dict[str, Any]:
    now = timezone.now()
    lines = cleanup_lines(team_ids=[request.team.pk], now=now)
    accounts = {line.instance.account_id: line.instance.account for line in lines}
    account = accounts.get(number(request.GET.get("account", "")))
    of_account = [line for line in lines if account is None or line.instance.account_id == account.pk]
    kind = next((one for one in Kind if one == request.GET.get("kind")), None)
    found = [line for line in of_account if kind is None or line.kind is kind]
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    sections = {one: total(line for line in of_account if line.kind is one) for one in Kind}
    return {
        "nav": "cleanup",
        "total": total(found),
        "sections": [(one.value, TITLES[one], sections[one]) for one in Kind],
        "kind": kind,
        "account": account,
        "accounts": sorted(accounts.values(), key=lambda row: row.name),
        "page": page,
        "groups": groups(list(page), sections, now=now),
        "may_change": request.membership.can(Role.OPERATOR),
        "query": query_of(request),
        "form": GoneForm(team_id=request.team.pk),
    }


def groups(lines: list[Line], sections: dict[Kind, Total], *, now: datetime) -> list[dict[str, Any]]:
    """The lines of one page, section by section."""
    kinds = [kind for kind in Kind if any(line.kind is kind for line in lines)]
    return [
        {
            "kind": kind.value,
            "title": TITLES[kind],
            "says": SAYS[kind],
            "total": sections[kind],
            "rows": [shown(line, now=now) for line in lines if line.kind is kind],
            "declarable": any(line.is_doubted for line in lines if line.kind is kind),
        }
        for kind in kinds
    ]


def shown(line: Line, *, now: datetime) -> dict[str, Any]:
    ends = line.kind is Kind.STOPPED and may_end(line.instance.account)
    return {"line": line, "evidence": evidence(line, now=now), "advice": advice(line), "ends": ends}


def number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def query_of(request: TeamRequest) -> str:
    query = request.GET.copy()
    query.pop("page", None)
    return query.urlencode()


@require_POST
@requires(Role.OPERATOR)
def cleanup_gone(request: TeamRequest) -> HttpResponse:
    """A person has looked at the provider: the chosen machines, which its list leaves out, are gone."""
    form = GoneForm(request.POST, team_id=request.team.pk)
    if not form.is_valid():
        chosen = {int(pk) for pk in request.POST.getlist("instance") if pk.isdecimal()}
        return render(
            request, "pages/cleanup.html", {**context_of(request), "form": form, "chosen": chosen}, status=422
        )
    actor, reason = Actor.of_page(request), form.cleaned_data["reason"]
    count = declare_gone(actor=actor, instances=list(form.cleaned_data["instance"]), reason=reason)
    said = ngettext("%(n)d machine counts as gone.", "%(n)d machines count as gone.", count) % {"n": count}
    messages.success(request, said)
    return redirect("cleanup", request.team.slug)
