"""People whom an OpenID provider vouches for: found, linked or made, and put into the teams that the provider names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.teams.access import announce_access_change
from fleet.teams.audit import Actor, record
from fleet.teams.errors import NoAccount
from fleet.teams.fields import one_line
from fleet.teams.members import change_role, remove_member
from fleet.teams.models import ExternalIdentity, Membership, Role, Team, User
from fleet.teams.sessions import end_sessions
from fleet.teams.teams import numbered

NOT_IN_USER_NAMES = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Vouched:
    """What the provider says of a person. `groups` is None where it says nothing, which is not the same as none."""

    issuer: str
    subject: str
    email: str
    email_verified: bool
    username: str
    name: str
    groups: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class GroupRole:
    """Who is in `group` at the provider has `role` in the team with the address `team_slug`."""

    group: str
    team_slug: str
    role: Role


@transaction.atomic
def find_person(*, vouched: Vouched, may_create: bool, ip_address: str | None) -> User:
    """By subject, else by verified e-mail address, else a new person where that is allowed. Raises NoAccount."""
    known = ExternalIdentity.objects.select_related("user").filter(issuer=vouched.issuer, subject=vouched.subject)
    if identity := known.first():
        return identity.user
    user = person_with_address(vouched)
    if user:
        take_over(user, vouched, ip_address)
    elif may_create:
        user = create_person(vouched, ip_address)
    else:
        raise NoAccount(_("Nobody here has this identity. Ask an admin of a team for an invitation."))
    ExternalIdentity.objects.create(user=user, issuer=vouched.issuer, subject=vouched.subject)
    return user


def person_with_address(vouched: Vouched) -> User | None:
    if not (vouched.email and vouched.email_verified):
        return None
    found = list(User.objects.filter(email__iexact=vouched.email)[:2])
    return found[0] if len(found) == 1 else None


def take_over(user: User, vouched: Vouched, ip_address: str | None) -> None:
    """The account belongs to whoever the provider vouches for: password and sessions of before end.

    Addresses typed into an account are not verified; else somebody could type a colleague's, and wait inside.
    """
    user.set_unusable_password()
    user.save(update_fields=["password"])
    end_sessions(user=user)
    record(
        actor=Actor(user, user.username, "page", ip_address),
        team=None,
        action="person.link",
        target=user,
        new={"issuer": vouched.issuer},
    )
    announce_access_change(user)


def create_person(vouched: Vouched, ip_address: str | None) -> User:
    # An address that the provider does not vouch for could be anybody's; it would sign in by it.
    email = vouched.email if vouched.email_verified else ""
    user = User.objects.create_user(free_username(vouched), email, first_name=one_line(vouched.name)[:150])
    record(
        actor=Actor(user, user.username, "page", ip_address),
        team=None,
        action="person.create",
        target=user,
        new={"username": user.username, "issuer": vouched.issuer},
    )
    return user


def free_username(vouched: Vouched) -> str:
    wished = vouched.username or vouched.email.partition("@")[0]
    base = NOT_IN_USER_NAMES.sub("-", wished)[:140].strip("-") or "person"
    return next(name for name in numbered(base) if not User.objects.filter(username__iexact=name).exists())


@transaction.atomic
def follow_groups(*, actor: Actor, user: User, groups: frozenset[str], rules: list[GroupRole]) -> None:
    """In teams that a rule names, the person has the highest role that their groups give, or no place.

    Teams without a rule are left alone. Raises LastAdmin where a team would have no admin left.
    """
    given: dict[str, Role | None] = {rule.team_slug: None for rule in rules}
    for rule in rules:
        before = given[rule.team_slug]
        if rule.group in groups and (before is None or before.rank < rule.role.rank):
            given[rule.team_slug] = rule.role
    # A rule for a team that does not exist yet waits until somebody makes it.
    for team in Team.objects.filter(slug__in=given, is_sandbox=False):
        give_role(actor=actor, user=user, team=team, role=given[team.slug])


def give_role(*, actor: Actor, user: User, team: Team, role: Role | None) -> None:
    membership = Membership.objects.select_related("team", "user").filter(team=team, user=user).first()
    if membership and role:
        change_role(actor=actor, membership=membership, role=role)
    elif membership:
        remove_member(actor=actor, membership=membership)
    elif role:
        Membership.objects.create(team=team, user=user, role=role)
        record(actor=actor, team=team, action="member.join", target=user, new={"role": role})


def parse_rules(words: list[str]) -> list[GroupRole]:
    """From `group=team:role`. Raises ValueError with the word that is wrong."""
    return [parse_rule(word) for word in words]


def parse_rule(word: str) -> GroupRole:
    # From the right: names of groups in a directory may hold "=" themselves (cn=gpu,dc=lab).
    group, _equals, place = word.rpartition("=")
    team_slug, _colon, role = place.partition(":")
    if not (group and team_slug and role in Role):
        raise ValueError(f"{word!r} is not group=team:role with a role of viewer, operator or admin")
    return GroupRole(group, team_slug, Role(role))


def vouched_by(*, issuer: str, claims: Mapping[str, object], group_claim: str) -> Vouched:
    """Reads standard claims (OpenID Connect Core 1.0, 5.1). Only a JSON true makes an address verified."""
    groups = claims.get(group_claim) if group_claim else None
    return Vouched(
        issuer=issuer,
        subject=str(claims["sub"]),
        email=str(claims.get("email") or ""),
        email_verified=claims.get("email_verified") is True,
        username=str(claims.get("preferred_username") or ""),
        name=str(claims.get("name") or ""),
        groups=frozenset(map(str, groups)) if isinstance(groups, list) else None,
    )
