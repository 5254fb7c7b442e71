"""People and their accounts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from fleet.teams.access import announce_access_change
from fleet.teams.audit import Actor, record
from fleet.teams.models import User
from fleet.teams.sessions import end_sessions
from fleet.teams.teams import create_team


@dataclass(frozen=True, slots=True)
class FirstLogin:
    """How the first admin signs in; `password` is known here only, and shown once."""

    username: str
    password: str = field(repr=False)
    team_slug: str


@transaction.atomic
def create_first_admin(*, password: str | None = None) -> FirstLogin | None:
    """The admin of a fresh installation and their team; None where anybody has an account already.

    Without a password one is made up.
    """
    if User.objects.exists():
        return None
    password = password or secrets.token_urlsafe(12)
    user = User.objects.create_user("admin", password=password)
    actor = Actor(user, user.username, "system")
    record(actor=actor, team=None, action="person.create", target=user, new={"username": user.username})
    team = create_team(actor=actor, name="My team")
    return FirstLogin(user.username, password, team.slug)


@transaction.atomic
def change_password(*, actor: Actor, user: User, password: str, keep_session: str | None = None) -> None:
    """Signs the person out everywhere, but for the session `keep_session`.

    Raises django.core.exceptions.ValidationError where the password is too weak.
    """
    validate_password(password, user)
    user.set_password(password)
    user.save(update_fields=["password"])
    end_sessions(user=user, but=keep_session)
    record(actor=actor, team=None, action="person.password", target=user)
    announce_access_change(user)
