"""An account that is tried before it is kept: it lies encrypted in the cache for a quarter of an hour, and a worker asks the provider."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from fleet.inventory.accounts import open_part, secret_part
from fleet.inventory.adapters import secrets_of
from fleet.inventory.checks import answers
from fleet.inventory.credentials import seal
from fleet.inventory.models import ProviderAccount
from fleet.inventory.tasks import check_draft
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

KEPT_SECONDS = 15 * 60
# What is kept of an account that has no row.
KEPT = (
    *("team_id", "kind", "name", "credentials", "options", "monitor_only", "poll_interval_seconds", "currency"),
    *("check_started_at", "checked_at", "check_results"),
)


def try_account(
    *, actor: Actor, team: Team, kind: str, name: str, values: Mapping[str, str], now: datetime, **kept: Any
) -> str:
    """Begins to try what was typed. The answer is the token under which the draft is found by the same team. Raises CredentialError."""
    draft = ProviderAccount(
        team=team,
        kind=kind,
        name=name,
        credentials=seal(secret_part(kind, values)),
        options=open_part(kind, values),
        currency=team.currency,
        check_started_at=now,
        **kept,
    )
    token = secrets.token_urlsafe(24)
    write(token, draft)
    record(actor=actor, team=team, action="account.verify", new={"kind": kind, "name": name})
    check_draft.delay(token)
    return token


def draft_of(team: Team, kind: str, token: str) -> ProviderAccount | None:
    """An account without a row. None: its time is over, or it is another team's."""
    draft = read(token) if token else None
    return draft if draft and (draft.team_id, draft.kind) == (team.pk, kind) else None


def with_kept_secrets(draft: ProviderAccount, values: Mapping[str, str]) -> dict[str, str]:
    """What was typed, and the secrets of the draft where their boxes were left empty."""
    return {**secrets_of(draft), **{name: value for name, value in values.items() if value}}


def run_draft(token: str) -> None:
    """The worker's part."""
    draft = read(token)
    if draft is None:
        return
    draft.check_results, _found = answers(draft)
    draft.checked_at = timezone.now()
    write(token, draft)


def forget_draft(token: str) -> None:
    cache.delete(key_of(token))


def key_of(token: str) -> str:
    return f"account-draft:{token}"


def write(token: str, draft: ProviderAccount) -> None:
    kept = {name: getattr(draft, name) for name in KEPT}
    cache.set(key_of(token), {**kept, "credentials": bytes(draft.credentials)}, KEPT_SECONDS)


def read(token: str) -> ProviderAccount | None:
    kept: dict[str, Any] | None = cache.get(key_of(token))
    return ProviderAccount(**kept) if kept else None
