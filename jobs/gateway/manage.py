"""What people may do with a gateway: set it, close it, give it another token; and what its callers may: leave a request, ask for it, call it off."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.teams.audit import Actor, record
from fleet.teams.secrets import NewToken, hash_token, new_token
from jobs.book.models import Job
from jobs.gateway.config import KEY
from jobs.gateway.models import Gateway, LaterRequest

MOST_WAITING = 1_000
MOST_LATER_BYTES = 1024 * 1024
KEPT = timedelta(days=1)
_PATH = re.compile(r"[a-z0-9_]{1,60}(?:/[a-z0-9_]{1,60}){0,3}")
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
BOUNDS = {
    "most_running": (1, 1_000),
    "queue_limit": (0, 10_000),
    "requests_per_second": (0.02, 10_000),
    "timeout_seconds": (1, 3_600),
    "retry_after_seconds": (1, 3_600),
}


class GatewayRefused(ValueError):
    """`field`: what has to be changed."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


@dataclass(frozen=True, slots=True)
class Limits:
    """As in Gateway."""

    most_running: int = 16
    queue_limit: int = 16
    requests_per_second: float | None = None
    timeout_seconds: int = 60
    retry_after_seconds: int = 2
    key_name: str = ""


@transaction.atomic
def set_gateway(*, actor: Actor, job: Job, limits: Limits, now: datetime, enabled: bool = True) -> Gateway:
    """Made, or changed. A new one has no token yet, and lets nobody in. Raises GatewayRefused."""
    refuse_limits(job, limits)
    old = Gateway.objects.select_for_update().filter(job=job).first()
    fields = asdict(limits) | {"enabled": enabled}
    made = {"name": new_name(), "created_at": now, "created_by": actor.user}
    gateway, _made = Gateway.objects.update_or_create(job=job, defaults=fields, create_defaults=fields | made)
    before = {name: getattr(old, name) for name in fields} if old else {}
    record(actor=actor, team=job.team, action="gateway.set", target=job, old=before, new={"name": job.name, **fields})
    return gateway


def refuse_limits(job: Job, limits: Limits) -> None:
    if not job.serving:
        raise GatewayRefused("", _("This job serves nothing: there is nothing to stand before."))
    for name, (low, high) in BOUNDS.items():
        value = getattr(limits, name)
        if value is not None and not low <= value <= high:
            raise GatewayRefused(name, _("From %(low)s to %(high)s.") % {"low": low, "high": high})
    if not limits.key_name:
        return
    if limits.key_name not in {*job.environment, *job.secret_names}:
        raise GatewayRefused("key_name", _("The job has no variable of that name."))
    try:
        fits = KEY.fullmatch(key_of(job, limits.key_name))
    except CredentialError as error:
        raise GatewayRefused("key_name", str(error)) from None
    if not fits:
        raise GatewayRefused("key_name", _("A key in a header is made of letters, digits and . _ ~ + / = - only."))


def key_of(job: Job, name: str) -> str:
    """The servers' API key. Raises CredentialError."""
    return str({**job.environment, **open_sealed(job.secrets)}.get(name, "")) if name else ""


def new_name() -> str:
    """In addresses that are typed: nothing that is taken for another letter."""
    return "".join(secrets.choice(_LETTERS) for _place in range(12))


@transaction.atomic
def make_token(*, actor: Actor, gateway: Gateway) -> NewToken:
    """The one token of its callers; the one before opens nothing any more. The secret is in what is returned and nowhere else."""
    new = new_token("rrg")
    Gateway.objects.filter(pk=gateway.pk).update(token_hash=new.hash, token_prefix=new.prefix)
    said = {"name": gateway.job.name, "prefix": new.prefix}
    record(actor=actor, team=gateway.job.team, action="gateway.token", target=gateway.job, new=said)
    return new


def gateway_for(*, name: str, secret: str) -> Gateway | None:
    """The open gateway that this token opens."""
    gateway = Gateway.objects.select_related("job").filter(name=name, enabled=True).first()
    if gateway is None or not gateway.token_hash or not secret.startswith("rrg_"):
        return None
    return gateway if hmac.compare_digest(gateway.token_hash, hash_token(secret)) else None


def leave_request(*, gateway: Gateway, path: str, body: bytes, now: datetime) -> LaterRequest:
    """Raises GatewayRefused: its field is path, body, or queue where too many wait."""
    if not _PATH.fullmatch(path):
        raise GatewayRefused(
            "path", "Leave requests at /later/v1/… with the server's own path, such as chat/completions."
        )
    if len(body) > MOST_LATER_BYTES:
        raise GatewayRefused("body", f"A request has at most {MOST_LATER_BYTES} bytes.")
    if gateway.later.filter(state__in=("queued", "running")).count() >= MOST_WAITING:
        raise GatewayRefused("queue", f"{MOST_WAITING} requests wait already.")
    return LaterRequest.objects.create(gateway=gateway, path=path, body=body, created_at=now, next_at=now)


def call_off(*, request: LaterRequest, now: datetime) -> bool:
    """Only what has not begun. False: it has."""
    rows = LaterRequest.objects.filter(pk=request.pk, state="queued")
    return bool(rows.update(state="cancelled", ended_at=now, body=b""))
