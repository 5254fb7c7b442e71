"""The Providers tab of Settings: accounts, their health, and everything that can be done to one. No view waits for a provider."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.inventory.account_form import AccountForm
from fleet.inventory.accounts import (
    MANUAL,
    create_account,
    delete_account,
    pause_account,
    update_account,
    verify_account,
)
from fleet.inventory.adapters import adapter_class, can
from fleet.inventory.check_words import is_running, lines_of, scopes_of
from fleet.inventory.drafts import draft_of, forget_draft, try_account, with_kept_secrets
from fleet.inventory.ending_words import COLUMNS, ending_rows
from fleet.inventory.health import Health, health_of
from fleet.inventory.machines import register_machines
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationState
from fleet.inventory.operations.progress import Progress
from fleet.inventory.prices import Burn, burn, price_now
from fleet.inventory.provider_choices import ACTS, SELF_MADE, provider_choices
from fleet.providers.base import Capability
from fleet.providers.errors import Invalid
from fleet.providers.registry import adapters
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# Instances shows them all, with filters.
MACHINES_SHOWN = 200
OPERATIONS_SHOWN, FAILED_SHOWN = 20, timedelta(days=7)
TAB = {"nav": "settings", "tab": "providers"}


@dataclass(frozen=True, slots=True)
class Row:
    account: ProviderAccount
    label: str
    health: Health
    machines: int
    gpus: int


@require_safe
def providers(request: TeamRequest) -> HttpResponse:
    find, can = request.GET.get("find", ""), request.GET.get("can", "")
    rows = [row_of(account) for account in accounts_with_counts(request)]
    context = {
        **TAB,
        "rows": [row for row in rows if not row.account.disconnected_at],
        "disconnected": [row for row in rows if row.account.disconnected_at],
        "choices": provider_choices(find=find, can=can),
        "acts": ACTS.items(),
        "find": find,
        "can": can,
    }
    return render(request, "inventory/providers.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def provider_account_new(request: TeamRequest, kind: str) -> HttpResponse:
    if kind in SELF_MADE or not is_known(kind):
        raise Http404
    token = (request.POST if request.method == "POST" else request.GET).get("draft", "")
    draft = draft_of(request.team, kind, token)
    form = AccountForm(request.POST or None, team=request.team, kind=kind, account=draft)
    if request.method == "POST" and form.is_valid():
        return tried_or_kept(request, kind, form, draft, token)
    context = {
        **TAB,
        **(draft_checks(request, draft, token) if draft else {}),
        "form": form,
        "label": label_of(kind),
        "draft_token": token if draft else "",
        "endings": ending_rows(adapter_class(kind).endings),
        "ending_columns": COLUMNS.values(),
    }
    return render(request, "inventory/account_new.html", context, status=422 if form.errors else 200)


def tried_or_kept(
    request: TeamRequest, kind: str, form: AccountForm, draft: ProviderAccount | None, token: str
) -> HttpResponse:
    """The button "Verify" tries what was typed and keeps no account."""
    actor, typed = Actor.of_page(request), form.arguments()
    if draft:
        typed["values"] = with_kept_secrets(draft, typed["values"])
    if "try" in request.POST:
        fresh = try_account(actor=actor, team=request.team, kind=kind, now=timezone.now(), **typed)
        return redirect(f"{request.path}?draft={fresh}#checks")
    account = create_account(actor=actor, team=request.team, kind=kind, **typed)
    verify_account(actor=actor, account=account)
    forget_draft(token)
    return redirect("provider_account", request.team.slug, account.pk)


@require_safe
@requires(Role.ADMIN)
def provider_draft_checks(request: TeamRequest, kind: str) -> HttpResponse:
    """As provider_account_checks, of what is tried before it is kept."""
    token = request.GET.get("draft", "")
    if not token:
        return redirect("provider_account_new", request.team.slug, kind)
    draft = draft_of(request.team, kind, token)
    if draft is None:
        raise Http404
    return render(request, "inventory/checks.html", draft_checks(request, draft, token))


def draft_checks(request: TeamRequest, draft: ProviderAccount, token: str) -> dict[str, Any]:
    address = reverse("provider_draft_checks", args=[request.team.slug, draft.kind])
    return {**checks(draft), "checks_url": f"{address}?draft={token}"}


@require_http_methods(["GET", "HEAD", "POST"])
def provider_account(request: TeamRequest, pk: int) -> HttpResponse:
    """Everybody of the team sees how it fares; only an admin sees and sends the form."""
    if request.method == "POST":
        return save(request, pk)
    return draw(request, account_of(request, pk))


@requires(Role.ADMIN)
def save(request: TeamRequest, pk: int) -> HttpResponse:
    account = account_of(request, pk)
    if account.kind in SELF_MADE or account.disconnected_at:
        raise Http404
    form = AccountForm(request.POST, team=request.team, kind=account.kind, account=account)
    if not form.is_valid():
        return draw(request, account, form=form, status=422)
    saved = update_account(actor=Actor.of_page(request), account=account, **form.arguments())
    verify_account(actor=Actor.of_page(request), account=saved)
    messages.success(request, _("Saved; the check runs."))
    return redirect("provider_account", request.team.slug, pk)


@require_POST
@requires(Role.ADMIN)
def provider_account_verify(request: TeamRequest, pk: int) -> HttpResponse:
    account = account_of(request, pk)
    if not account.disconnected_at:
        verify_account(actor=Actor.of_page(request), account=account)
    return redirect("provider_account", request.team.slug, pk)


@require_safe
def provider_account_checks(request: TeamRequest, pk: int) -> HttpResponse:
    """The part of the page that asks again while a check runs."""
    return render(request, "inventory/checks.html", account_checks(request, account_of(request, pk)))


@require_POST
@requires(Role.ADMIN)
def provider_account_pause(request: TeamRequest, pk: int) -> HttpResponse:
    paused = request.POST.get("paused") == "1"
    if pause_account(actor=Actor.of_page(request), account=account_of(request, pk), paused=paused):
        messages.success(request, _("Reading is paused.") if paused else _("Reading goes on."))
    return redirect("provider_account", request.team.slug, pk)


@require_POST
@requires(Role.OPERATOR)
def provider_account_register(request: TeamRequest, pk: int) -> HttpResponse:
    count = register_machines(actor=Actor.of_page(request), account=account_of(request, pk))
    said = ngettext("%(n)d machine is registered.", "%(n)d machines are registered.", count)
    messages.success(request, said % {"n": count})
    return redirect("provider_account", request.team.slug, pk)


@require_POST
@requires(Role.ADMIN)
def provider_account_disconnect(request: TeamRequest, pk: int) -> HttpResponse:
    account = account_of(request, pk)
    if delete_account(actor=Actor.of_page(request), account=account):
        said = _("%(name)s is disconnected. Its machines run on; nobody here watches them any more.")
        messages.success(request, said % {"name": account.name})
    return redirect("providers", request.team.slug)


def draw(
    request: TeamRequest, account: ProviderAccount, *, form: AccountForm | None = None, status: int = 200
) -> HttpResponse:
    editable = request.membership.can(Role.ADMIN) and account.kind not in SELF_MADE and not account.disconnected_at
    if form is None and editable and is_known(account.kind):
        form = AccountForm(team=request.team, kind=account.kind, account=account)
    context = {
        **TAB,
        **account_checks(request, account),
        "label": label_of(account.kind),
        "unproved": unproved_of(account),
        "health": health_of(account, now=timezone.now()),
        "form": form if editable else None,
        "editable": editable,
        "typed": account.kind == MANUAL,
        "admins": request.team.memberships.filter(role=Role.ADMIN).select_related("user").order_by("user__username"),
        "endings": ending_rows(adapters()[account.kind].endings) if account.kind in adapters() else [],
        "ending_columns": COLUMNS.values(),
        "listable": can(account, Capability.LIST),
        **fleet_of(account),
    }
    return render(request, "inventory/account.html", context, status=status)


def account_checks(request: TeamRequest, account: ProviderAccount) -> dict[str, Any]:
    return {**checks(account), "checks_url": reverse("provider_account_checks", args=[request.team.slug, account.pk])}


def checks(account: ProviderAccount) -> dict[str, Any]:
    now = timezone.now()
    return {
        "account": account,
        "running": is_running(account, now=now),
        "lines": lines_of(account, now=now),
        "scopes": [] if is_running(account, now=now) else scopes_of(account),
    }


def unproved_of(account: ProviderAccount) -> list[Progress]:
    """Operations at this provider that nothing has shown to be done; failed ones of the last days among them."""
    now = timezone.now()
    rows = Operation.objects.filter(account=account).exclude(state=OperationState.PROVED)
    recent = rows.filter(Q(state__in=OPEN_STATES) | Q(failed_at__gt=now - FAILED_SHOWN))
    newest = recent.select_related("instance", "account").order_by("-requested_at")[:OPERATIONS_SHOWN]
    return [Progress(operation, now) for operation in newest]


def fleet_of(account: ProviderAccount) -> dict[str, Any]:
    """The account's machines, for its page."""
    machines = list(Instance.objects.filter(account=account, gone_at=None).order_by("name"))
    figure: Burn = burn(machines)
    return {
        "machines": [(machine, price_now(machine)) for machine in machines[:MACHINES_SHOWN]],
        "more": max(0, len(machines) - MACHINES_SHOWN),
        "gpus": sum(machine.gpu_count or 0 for machine in machines),
        "unmanaged": sum(not machine.managed for machine in machines),
        "burn": figure,
    }


def accounts_with_counts(request: TeamRequest) -> list[ProviderAccount]:
    there = Q(instances__gone_at=None)
    return list(
        ProviderAccount.objects.filter(team=request.team)
        .annotate(
            machine_count=Count("instances", filter=there),
            gpu_count=Sum("instances__gpu_count", filter=there, default=0),
        )
        .order_by("name", "pk")
    )


def row_of(account: Any) -> Row:
    """`account` with the counts of accounts_with_counts."""
    health = health_of(account, now=timezone.now())
    return Row(account, label_of(account.kind), health, account.machine_count, account.gpu_count)


def account_of(request: HttpRequest, pk: int) -> ProviderAccount:
    return get_object_or_404(ProviderAccount, pk=pk, team=request.team)  # type: ignore[attr-defined]


def is_known(kind: str) -> bool:
    try:
        adapter_class(kind)
    except Invalid:
        return False
    return True


def label_of(kind: str) -> str:
    """What a provider is called; the kind itself where its adapter is not installed any more."""
    return _(adapters()[kind].label) if kind in adapters() else kind
