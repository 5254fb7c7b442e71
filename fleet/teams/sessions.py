"""Sessions in the database, each with the person it belongs to, so that all of somebody's sessions can be ended at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.http import HttpRequest
from django.utils import timezone

from fleet.teams.addresses import client_ip
from fleet.teams.models import BrowserSession, User

SIGN_IN = "sign_in"


class SessionStore(DatabaseStore):
    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        return BrowserSession

    def create_model_instance(self, data: Mapping[str, Any]) -> BrowserSession:
        row: BrowserSession = super().create_model_instance(data)  # type: ignore[assignment,arg-type]
        if user_id := data.get(SESSION_KEY):
            sign_in = data.get(SIGN_IN, {})
            # Copied into columns, because the session's own data is signed text that no query can look into.
            row.user_id = int(user_id)
            row.signed_in_at = datetime.fromisoformat(sign_in["at"]) if "at" in sign_in else None
            row.ip_address = sign_in.get("ip_address")
            row.user_agent = sign_in.get("user_agent", "")
        return row


def remember_sign_in(*, request: HttpRequest, **_signal: Any) -> None:
    request.session[SIGN_IN] = {
        "at": timezone.now().isoformat(),
        "ip_address": client_ip(request),
        "user_agent": request.headers.get("User-Agent", "")[:200],
    }


def connect() -> None:
    user_logged_in.connect(remember_sign_in, dispatch_uid="remember_sign_in")


def end_sessions(*, user: User, but: str | None = None) -> int:
    """Signs the person out of every browser except the session `but`; how many were ended."""
    count, _ = BrowserSession.objects.filter(user=user).exclude(session_key=but or "").delete()
    return count
