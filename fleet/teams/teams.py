"""Teams themselves: made and renamed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext

from fleet.teams.audit import Actor, record
from fleet.teams.errors import Taken
from fleet.teams.models import Membership, Role, Team

# Addresses that would be misread beside these: /t/new/ and the sandbox, which is nobody's own.
RESERVED_SLUGS = {"new", "sandbox"}
MAX_TRIES = 10


@transaction.atomic
def create_team(*, actor: Actor, name: str) -> Team:
    """The actor becomes its admin."""
    assert actor.user is not None
    team = with_free_slug(name)
    Membership.objects.create(team=team, user=actor.user, role=Role.ADMIN)
    record(actor=actor, team=team, action="team.create", target=team, new={"name": name, "slug": team.slug})
    return team


@transaction.atomic
def update_team(*, actor: Actor, team: Team, name: str, currency: str, time_zone: str) -> None:
    """Renames a team, changes its currency or where its days begin. Its address stays: links to it must keep working."""
    new = {"name": name, "currency": currency, "time_zone": time_zone}
    old = {key: getattr(team, key) for key in new}
    changed = {key: value for key, value in new.items() if value != old[key]}
    if not changed:
        return
    Team.objects.filter(pk=team.pk).update(**changed)
    team.name, team.currency, team.time_zone = name, currency, time_zone
    record(
        actor=actor, team=team, action="team.update", target=team, old={key: old[key] for key in changed}, new=changed
    )


def with_free_slug(name: str) -> Team:
    """Somebody else may take the address between the look and the write; then the next one is free."""
    for _ in range(MAX_TRIES):
        try:
            with transaction.atomic():
                return Team.objects.create(name=name, slug=free_team_slug(name))
        except IntegrityError:
            continue
    raise Taken(gettext("Many teams of this name are being made right now. Try again, or choose another name."))


def free_team_slug(name: str) -> str:
    """An address that nobody has: the name in ASCII, numbered where it is taken; a Chinese name becomes team-2, team-3, …"""
    # Ten characters are left for the number.
    base = slugify(name)[:50] or "team"
    taken = set(Team.objects.filter(slug__startswith=base).values_list("slug", flat=True)) | RESERVED_SLUGS
    return next(slug for slug in numbered(base) if slug not in taken)


def numbered(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base}-{number}" for number in count(2))
