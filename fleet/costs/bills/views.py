"""Bills: what was compared, what was imported, one month of one account, and counting it as billed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from fleet.costs.bills.adjusting import accept_explained, accept_lines, reverse_adjustment
from fleet.costs.bills.asking import NAME, ask_for_bill
from fleet.costs.bills.forms import ReasonForm
from fleet.costs.bills.models import Bill, BillSource, Reconciliation
from fleet.costs.bills.panel import other_months, told_reconciliation
from fleet.costs.spend.models import Adjustment
from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_word.models import ProviderReading
from fleet.providers.base import Capability
from fleet.providers.registry import kinds_with
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# Rows of a page: more of them nobody reads, the API has them all.
SHOWN = 100


def bills(request: TeamRequest) -> HttpResponse:
    compared = Reconciliation.objects.filter(account__team=request.team).select_related("account")
    files = Bill.objects.filter(team=request.team).exclude(source=BillSource.API)
    context = {
        **frame(request),
        "asked": asked_accounts(request),
        "compared": compared.order_by("-month", "account__name", "currency")[:SHOWN],
        "files": files.select_related("account", "imported_by").order_by("-imported_at")[:SHOWN],
        "adjustments": adjustments_of(request),
    }
    return render(request, "costs/bills.html", context)


def asked_accounts(request: TeamRequest) -> list[dict[str, Any]]:
    """Accounts whose provider can be asked for its bill, with when that was done last and what went wrong."""
    accounts = ProviderAccount.objects.filter(
        team=request.team, kind__in=kinds_with(Capability.COSTS), disconnected_at=None
    ).order_by("name")
    readings = {row.account_id: row for row in ProviderReading.objects.filter(account__in=accounts, subject=NAME)}
    return [
        {
            "account": account,
            "reading": readings.get(account.pk),
            "error": in_readers_language(readings[account.pk].error_detail) if account.pk in readings else "",
        }
        for account in accounts
    ]


def adjustments_of(request: TeamRequest, account: ProviderAccount | None = None) -> list[Adjustment]:
    rows = Adjustment.objects.filter(team=request.team).select_related(
        "account", "instance", "created_by", "reversed_by", "reverses"
    )
    found = rows.filter(account=account) if account else rows
    return list(found.order_by("-created_at", "-pk")[:SHOWN])


def bill_month(request: TeamRequest, pk: int) -> HttpResponse:
    made = month_of(request, pk)
    context = {
        **frame(request),
        **told_reconciliation(made, most=SHOWN),
        "others": other_months(request, made.month),
        "adjustments": adjustments_of(request, made.account),
    }
    return render(request, "costs/bill_month.html", context)


@require_POST
@requires(Role.OPERATOR)
def bill_accept(request: TeamRequest, pk: int) -> HttpResponse:
    """`line`: ids of lines; without any, all whose difference is explained."""
    made = month_of(request, pk)
    actor, now = Actor.of_page(request), timezone.now()
    lines = [int(word) for word in request.POST.getlist("line") if word.isascii() and word.isdigit() and len(word) < 19]
    try:
        if lines:
            kept = accept_lines(actor=actor, reconciliation=made, lines=lines, now=now)
        else:
            kept = accept_explained(actor=actor, reconciliation=made, now=now)
    except ValidationError as refusal:
        messages.error(request, " ".join(refusal.messages))
    else:
        text = ngettext("%(count)d line counts as billed.", "%(count)d lines count as billed.", len(kept))
        messages.success(request, text % {"count": len(kept)})
    return redirect("bill_month", request.team.slug, made.pk)


@require_POST
@requires(Role.OPERATOR)
def bill_ask(request: TeamRequest, account_id: int) -> HttpResponse:
    account = get_object_or_404(ProviderAccount, pk=account_id, team=request.team)
    if ask_for_bill(actor=Actor.of_page(request), account=account, now=timezone.now()):
        messages.success(
            request, _("%(name)s is asked for its bill; it takes a minute or two.") % {"name": account.name}
        )
    else:
        messages.error(request, _("%(name)s has no bill to ask for. Import its file.") % {"name": account.name})
    return redirect("bills", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def adjustment_reverse(request: TeamRequest, pk: int) -> HttpResponse:
    adjustment = get_object_or_404(Adjustment, pk=pk, team=request.team)
    form = ReasonForm(request.POST)
    try:
        reverse_adjustment(
            actor=Actor.of_page(request),
            adjustment=adjustment,
            reason=form.cleaned_data["reason"] if form.is_valid() else "",
            now=timezone.now(),
        )
        messages.success(request, _("Taken back; both rows are kept."))
    except ValidationError as refusal:
        messages.error(request, " ".join(refusal.messages))
    return redirect("bills", request.team.slug)


def month_of(request: TeamRequest, pk: int) -> Reconciliation:
    mine = Reconciliation.objects.filter(account__team=request.team).select_related("account__team")
    return get_object_or_404(mine, pk=pk)


def frame(request: TeamRequest) -> dict[str, Any]:
    return {"nav": "costs", "tab": "bills", "may_change": request.membership.can(Role.OPERATOR)}
