"""API tokens: made, found by their secret, withdrawn."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from fleet.teams.audit import Actor, record
from fleet.teams.models import APIToken, Role, Scope, Team, User
from fleet.teams.secrets import NewToken, hash_token, new_token

# A busy script would otherwise write the row at every call.
LAST_USED_STEP = timedelta(minutes=1)


@transaction.atomic
def create_token(
    *, actor: Actor, team: Team, name: str, scope: Scope, expires_at: datetime | None = None
) -> tuple[APIToken, NewToken]:
    """The secret is in the second value and nowhere else."""
    new = new_token("rrk")
    token = APIToken.objects.create(
        team=team,
        name=name,
        scope=scope,
        token_hash=new.hash,
        prefix=new.prefix,
        created_by=actor.user,
        expires_at=expires_at,
    )
    described = {"name": name, "scope": scope, "expires_at": expires_at.isoformat() if expires_at else None}
    record(actor=actor, team=team, action="token.create", target=token, new=described)
    return token, new


@transaction.atomic
def revoke_token(*, actor: Actor, token: APIToken, now: datetime | None = None) -> bool:
    """False where it was revoked already."""
    changed = APIToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now or timezone.now())
    if changed:
        record(actor=actor, team=token.team, action="token.revoke", target=token)
    return bool(changed)


def find_token(*, secret: str, now: datetime) -> APIToken | None:
    """The living token with this secret, or None; notes its use, at most once a minute."""
    token = usable_tokens(now=now).select_related("team").filter(token_hash=hash_token(secret)).first()
    if token and (token.last_used_at is None or token.last_used_at <= now - LAST_USED_STEP):
        APIToken.objects.filter(pk=token.pk).update(last_used_at=now)
        token.last_used_at = now
    return token


def usable_tokens(*, now: datetime) -> QuerySet[APIToken]:
    return APIToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


def revoke_tokens_beyond(*, actor: Actor, team: Team, user: User, role: Role | None) -> int:
    """Withdraws the tokens that the person made and that may do more than they may now (role None: nothing).

    Who made a token may have kept its secret: it must not outlive their right.
    """
    made = APIToken.objects.filter(team=team, created_by=user, revoked_at=None)
    beyond = [token for token in made if role is None or Scope(token.scope).role.rank > role.rank]
    return sum(revoke_token(actor=actor, token=token) for token in beyond)
