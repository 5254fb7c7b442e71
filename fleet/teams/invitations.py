"""Links that let one person join a team, once."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.password_validation import validate_password
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.teams.access import announce_access_change
from fleet.teams.audit import Actor, record
from fleet.teams.errors import InvitationUnusable, Taken
from fleet.teams.models import Invitation, Membership, Role, Team, User
from fleet.teams.names import refuse_taken
from fleet.teams.secrets import NewToken, new_token

LIFETIME = timedelta(days=7)


@transaction.atomic
def create_invitation(
    *, actor: Actor, team: Team, role: Role, email: str = "", lifetime: timedelta = LIFETIME
) -> tuple[Invitation, NewToken]:
    """The secret of the link is in the second value and nowhere else."""
    new = new_token("rri")
    invitation = Invitation.objects.create(
        team=team,
        role=role,
        email=email,
        token_hash=new.hash,
        created_by=actor.user,
        expires_at=timezone.now() + lifetime,
    )
    described = {"role": role, "email": email, "expires_at": invitation.expires_at.isoformat()}
    record(actor=actor, team=team, action="invitation.create", target=invitation, new=described)
    return invitation, new


@transaction.atomic
def revoke_invitation(*, actor: Actor, invitation: Invitation) -> bool:
    """False where it was used or withdrawn already."""
    open_ones = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, revoked_at=None)
    changed = open_ones.update(revoked_at=timezone.now())
    if changed:
        record(actor=actor, team=invitation.team, action="invitation.revoke", target=invitation)
    return bool(changed)


def revoke_invitations_of(*, actor: Actor, team: Team, user: User) -> int:
    """A link that somebody made must not let them in again after they had to go."""
    made = Invitation.objects.filter(team=team, created_by=user, accepted_at=None, revoked_at=None)
    return sum(revoke_invitation(actor=actor, invitation=invitation) for invitation in made)


def find_invitation(*, token_hash: str, now: datetime) -> Invitation | None:
    """The invitation that can still be accepted, or None."""
    found = Invitation.objects.select_related("team", "created_by").filter(
        token_hash=token_hash, accepted_at=None, revoked_at=None, expires_at__gt=now
    )
    return found.first()


@transaction.atomic
def accept_invitation(*, actor: Actor, invitation: Invitation, now: datetime) -> Membership:
    """The actor joins. Raises InvitationUnusable, and Taken for a member, whose link stays good for somebody else."""
    user = actor.user
    assert user is not None
    if Membership.objects.filter(team=invitation.team, user=user).exists():
        raise Taken(_("You are in this team already. The link still works for somebody else."))
    # Compare and set: of two who accept at the same moment, the second changes no row.
    still_open = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, revoked_at=None, expires_at__gt=now)
    if not still_open.update(accepted_at=now, accepted_by=user):
        raise InvitationUnusable(_("This invitation was used or withdrawn. Ask for a new one."))
    membership = Membership.objects.create(team=invitation.team, user=user, role=invitation.role)
    record(actor=actor, team=invitation.team, action="member.join", target=user, new={"role": invitation.role})
    announce_access_change(user)
    return membership


@transaction.atomic
def register_invited(
    *, invitation: Invitation, username: str, password: str, email: str, ip_address: str | None, now: datetime
) -> User:
    """A new person's account and their place in the team, or neither.

    Raises Taken, InvitationUnusable, and django.core.exceptions.ValidationError where the password is too weak.
    """
    refuse_taken(username=username, email=email)
    validate_password(password, User(username=username, email=email))
    # Two may ask for the same name between the check and the insert; the database decides.
    try:
        with transaction.atomic():
            user = User.objects.create_user(username, email, password)
    except IntegrityError:
        raise Taken(_("This user name is taken. Choose another."), field="username") from None
    actor = Actor(user, username, "page", ip_address)
    record(actor=actor, team=None, action="person.create", target=user, new={"username": username, "email": email})
    accept_invitation(actor=actor, invitation=invitation, now=now)
    return user
