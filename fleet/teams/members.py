"""Who is in a team, and with which role."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.teams.access import announce_access_change
from fleet.teams.audit import Actor, record
from fleet.teams.errors import LastAdmin
from fleet.teams.invitations import revoke_invitations_of
from fleet.teams.models import Membership, Role, Team
from fleet.teams.tokens import revoke_tokens_beyond


@transaction.atomic
def change_role(*, actor: Actor, membership: Membership, role: Role) -> None:
    """Raises LastAdmin. Tokens that the person made and that may do more than the new role are withdrawn."""
    old = lock_role(membership)
    if old is None or old == role:
        return
    keep_an_admin(membership, old, role)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    membership.role = role
    revoke_what_exceeds(actor, membership, role)
    record(
        actor=actor,
        team=membership.team,
        action="member.role",
        target=membership.user,
        old={"role": old},
        new={"role": role},
    )
    announce_access_change(membership.user)


@transaction.atomic
def remove_member(*, actor: Actor, membership: Membership) -> None:
    """Also how a person leaves. Raises LastAdmin. Their tokens and open invitations for this team go with them."""
    old = lock_role(membership)
    if old is None:
        return
    keep_an_admin(membership, old, None)
    Membership.objects.filter(pk=membership.pk).delete()
    revoke_what_exceeds(actor, membership, None)
    record(actor=actor, team=membership.team, action="member.remove", target=membership.user, old={"role": old})
    announce_access_change(membership.user)


def lock_role(membership: Membership) -> Role | None:
    """The role as it is now, None where the person is no member any more.

    The team's row is locked first: two admins who remove each other at the same moment come one after the other.
    """
    Team.objects.select_for_update().get(pk=membership.team_id)
    role = Membership.objects.filter(pk=membership.pk).values_list("role", flat=True).first()
    return Role(role) if role else None


def keep_an_admin(membership: Membership, old: Role, new: Role | None) -> None:
    if old != Role.ADMIN or new == Role.ADMIN:
        return
    # Whoever cannot sign in cannot manage anything.
    others = Membership.objects.filter(team=membership.team, role=Role.ADMIN, user__is_active=True)
    if not others.exclude(pk=membership.pk).exists():
        raise LastAdmin(_("A team needs an admin. Make somebody else an admin first."))


def revoke_what_exceeds(actor: Actor, membership: Membership, role: Role | None) -> None:
    revoke_tokens_beyond(actor=actor, team=membership.team, user=membership.user, role=role)
    if role != Role.ADMIN:
        revoke_invitations_of(actor=actor, team=membership.team, user=membership.user)
