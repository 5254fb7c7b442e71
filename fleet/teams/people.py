"""People and their accounts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from fleet.teams.access import announce_access_change
from fleet.teams.audit import Actor, record
from fleet.teams.members import remove_member
from fleet.teams.models import BrowserSession, Membership, User
from fleet.teams.names import refuse_taken
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
def update_profile(
    *,
    actor: Actor,
    user: User,
    username: str,
    name: str,
    email: str,
    language: str,
    time_zone: str,
    shows_sandbox: bool,
) -> None:
    """Raises Taken, with the field, where somebody else has the user name or the address."""
    refuse_taken(username=username, email=email, but=user)
    new: dict[str, str | bool] = {
        "username": username,
        "first_name": name,
        "last_name": "",
        "email": email,
        "language": language,
        "time_zone": time_zone,
        "hides_sandbox": not shows_sandbox,
    }
    # An account made elsewhere may keep first and last name apart; a form that was sent unchanged must not join them.
    if name == user.get_full_name():
        del new["first_name"], new["last_name"]
    write_changes(actor, user, new)


def write_changes(actor: Actor, user: User, new: dict[str, str | bool]) -> None:
    old = {key: getattr(user, key) for key in new if getattr(user, key) != new[key]}
    if not old:
        return
    for key in old:
        setattr(user, key, new[key])
    user.save(update_fields=list(old))
    record(actor=actor, team=None, action="person.update", target=user, old=old, new={key: new[key] for key in old})


@transaction.atomic
def choose_language(*, actor: Actor, user: User, language: str) -> None:
    write_changes(actor, user, {"language": language})


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


@transaction.atomic
def end_session(*, actor: Actor, session: BrowserSession) -> None:
    user = session.user
    assert user is not None
    session.delete()
    record(actor=actor, team=None, action="session.end", target=user)
    announce_access_change(user)


@transaction.atomic
def end_other_sessions(*, actor: Actor, user: User, keep_session: str | None) -> None:
    ended = end_sessions(user=user, but=keep_session)
    record(actor=actor, team=None, action="session.end", target=user, new={"ended": ended})
    announce_access_change(user)


@transaction.atomic
def close_account(*, actor: Actor, user: User) -> None:
    """The person leaves every team and cannot sign in any more; what they did stays in the audit log under their name.

    Raises LastAdmin, and nothing is changed then.
    """
    # One team after the other in one transaction: where one of them would lose its last admin, all stay.
    for membership in Membership.objects.filter(user=user).select_related("team", "user"):
        remove_member(actor=actor, membership=membership)
    user.is_active = False
    user.save(update_fields=["is_active"])
    end_sessions(user=user)
    record(actor=actor, team=None, action="person.close", target=user)
    announce_access_change(user)
