"""The sample fleet beside a real one: whose it is, and a person's wish not to see it."""

from __future__ import annotations

from django.db import transaction

from fleet.teams.audit import Actor, record
from fleet.teams.models import Team, User


def sandbox_of(team: Team) -> Team | None:
    """The sandbox team, for the pages of any other team."""
    return None if team.is_sandbox else Team.objects.filter(is_sandbox=True).first()


@transaction.atomic
def set_sandbox_hidden(*, actor: Actor, user: User, hidden: bool) -> bool:
    """Says whether this call changed it."""
    changed = User.objects.filter(pk=user.pk, hides_sandbox=not hidden).update(hides_sandbox=hidden) == 1
    if changed:
        record(
            actor=actor,
            team=None,
            action="sandbox.hide" if hidden else "sandbox.show",
            target=user,
            old={"hides_sandbox": not hidden},
            new={"hides_sandbox": hidden},
        )
    return changed
