"""Is this key good, and for what? Run when a person asks; each answer names the remedy."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from django.conf import settings

from fleet.inventory.adapters import can, open_adapter
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.listing import prices_of, read_listing
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Capability, Provider, Scope

Result = dict[str, Any]
MAX_SCOPES = 50


def run_checks(*, account: ProviderAccount, now: datetime) -> list[Result]:
    """Asks the provider, then keeps the answers. Each: {"name", "result": "ok" | "warn" | "no", and figures for its text}."""
    results, found = answers(account)
    ProviderAccount.objects.filter(pk=account.pk, check_started_at=account.check_started_at).update(
        checked_at=now, check_results=results, **found
    )
    return results


def answers(account: ProviderAccount) -> tuple[list[Result], dict[str, str]]:
    """The results, and what they teach us of the account."""
    results: list[Result] = []
    try:
        adapter = open_adapter(account)
        started = time.monotonic()
        info = adapter.verify()
        milliseconds = round((time.monotonic() - started) * 1000)
        results.append({"name": "accepted", "result": "ok", "as": info.external_id[:200], "milliseconds": milliseconds})
        results += twins(account, info.external_id)
        results += [{"name": "lacks", "result": "warn", "permission": lack[:120]} for lack in info.lacks]
        results += [scope_result(scope) for scope in info.scopes[:MAX_SCOPES]]
        if can(account, Capability.LIST):
            results += counted(adapter, account.currency)
    except Exception as error:  # noqa: BLE001 - the person who asked gets an answer, also of an adapter with a bug
        return [*results, refusal(account, error)], {}
    return results, {"external_id": info.external_id[:200], "currency": info.currency[:3]}


def refusal(account: ProviderAccount, error: Exception) -> Result:
    known = as_provider_error(error, account)
    return {"name": "failed", "result": "no", "kind": known.kind, "detail": shown_text(account, known)}


def scope_result(scope: Scope) -> Result:
    """A row of the table of permissions."""
    result = "ok" if scope.granted else "warn"
    return {"name": "scope", "result": result, "permission": scope.name[:120], "without": scope.without[:200]}


def twins(account: ProviderAccount, external_id: str) -> list[Result]:
    """Other accounts here that are the same one at the provider: their machines would be counted, and paid, twice."""
    same = ProviderAccount.objects.filter(
        team=account.team_id, kind=account.kind, external_id=external_id, disconnected_at=None
    ).exclude(pk=account.pk)
    names = same.order_by("name").values_list("name", flat=True) if external_id else ()
    return [{"name": "twin", "result": "warn", "account": name} for name in names]


def counted(adapter: Provider, currency: str) -> list[Result]:
    """What a listing shows, and how much of it has a price."""
    machines = read_listing(adapter, timeout_seconds=settings.POLL_TIMEOUT_SECONDS).machines
    unpriced = sum(prices_of(machine, currency)["price_per_hour"] is None for machine in machines)
    gpus = sum(machine.gpu_count or 0 for machine in machines)
    results: list[Result] = [{"name": "machines", "result": "ok", "machines": len(machines), "gpus": gpus}]
    if unpriced:
        results.append({"name": "unpriced", "result": "warn", "machines": unpriced})
    return results
