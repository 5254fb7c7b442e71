"""The stored answers of a check, as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.inventory.failures import in_readers_language
from fleet.inventory.health import remedy_for
from fleet.inventory.models import ProviderAccount

# A check has its own time-out; past this nobody works on it any more.
GIVEN_UP_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Line:
    """result: ok, warn or no."""

    result: str
    title: str
    detail: str = ""


def is_running(account: ProviderAccount, *, now: datetime) -> bool:
    started = account.check_started_at
    return started is not None and account.checked_at is None and now - started < GIVEN_UP_AFTER


def lines_of(account: ProviderAccount, *, now: datetime) -> list[Line]:
    if account.check_started_at and account.checked_at is None and not is_running(account, now=now):
        return [Line("no", _("The check did not finish"), _("Is the worker running? Then verify again."))]
    if not account.checked_at:
        return []
    return [line_of(result) for result in account.check_results if result["name"] != "scope"]


@dataclass(frozen=True, slots=True)
class ScopeLine:
    permission: str
    granted: bool
    without: str


def scopes_of(account: ProviderAccount) -> list[ScopeLine]:
    """What the key may, as the last check found it."""
    found = [result for result in account.check_results if account.checked_at and result["name"] == "scope"]
    return [
        ScopeLine(result["permission"], result["result"] == "ok", in_readers_language(result["without"]))
        for result in found
    ]


def line_of(result: dict[str, Any]) -> Line:
    name = result["name"]
    if name == "accepted":
        return accepted(result)
    if name == "twin":
        title = _("“%(account)s” is the same account at the provider") % result
        return Line("warn", title, _("Its machines count twice while both are connected; disconnect one of them."))
    if name == "lacks":
        title = _("The key lacks %(permission)s") % result
        return Line("warn", title, _("What it would tell stays unknown; everything else is read."))
    if name == "machines":
        return Line("ok", machines_title(result), _("read from the first page to the last"))
    if name == "unpriced":
        return unpriced(result)
    return Line("no", in_readers_language(result["detail"]) or _("The provider refused"), remedy_for(result["kind"]))


def accepted(result: dict[str, Any]) -> Line:
    took = {"as": result["as"], "seconds": f"{result['milliseconds'] / 1000:.1f}"}
    detail = _("as %(as)s, in %(seconds)s s") if result["as"] else _("in %(seconds)s s")
    return Line("ok", _("The key is accepted"), detail % took)


def machines_title(result: dict[str, Any]) -> str:
    machines = ngettext("%(n)d machine", "%(n)d machines", result["machines"]) % {"n": result["machines"]}
    gpus = ngettext("%(n)d GPU", "%(n)d GPUs", result["gpus"]) % {"n": result["gpus"]}
    return f"{machines}, {gpus}"


def unpriced(result: dict[str, Any]) -> Line:
    title = ngettext("%(n)d machine has no known price", "%(n)d machines have no known price", result["machines"])
    detail = _("Their cost counts as unknown, not as zero; type prices where the form asks for them.")
    return Line("warn", title % {"n": result["machines"]}, detail)
