"""What people write of environments: versions, what keeping an image costs, and the runbook. Every edit leaves both wordings in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.inventory.environments.models import Environment
from fleet.inventory.models import Image
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

EDITABLE = ("name", "reference", "typed", "price_per_month", "currency", "commands", "pitfalls", "notes")


# Stands for the last edit of what nobody has edited.
NEVER = datetime.min.replace(tzinfo=UTC)


class EnvironmentRefused(Exception):
    """The text is for whoever asked; `field` names what is wrong."""

    def __init__(self, text: str, *, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field


class Overtaken(EnvironmentRefused):
    """Somebody else wrote meanwhile."""


@transaction.atomic
def create_template(*, actor: Actor, team: Team, values: Mapping[str, Any], now: datetime) -> Environment:
    """An environment without an image of its own. Raises EnvironmentRefused for a name that is taken."""
    Team.objects.select_for_update().get(pk=team.pk)
    refuse_name(team.pk, str(values["name"]))
    environment = Environment(team=team, created_at=now)
    write(environment, values, actor=actor, now=now)
    environment.save()
    record(actor=actor, team=team, action="environment.create", target=environment, new=shown(environment))
    return environment


@transaction.atomic
def edit_environment(
    *, actor: Actor, environment: Environment, values: Mapping[str, Any], now: datetime, seen: datetime | None = None
) -> Environment:
    """Changes the fields of EDITABLE that `values` names. An image's environment is saved with its first edit.

    `seen`: its `edited_at` as the writer read it, NEVER for none; raises Overtaken if it is another now, so that nobody's words are lost.
    """
    team = Team.objects.select_for_update().get(pk=environment.team_id)
    row = locked(environment)
    if seen is not None and (row.edited_at or NEVER) != seen:
        raise Overtaken(_("Somebody else changed this meanwhile. Read it again, then add what is missing."))
    if row.image_id is None and "name" in values and values["name"] != row.name:
        refuse_name(team.pk, str(values["name"]))
    before = shown(row) if row.pk else {}
    write(row, values, actor=actor, now=now)
    after = shown(row)
    changed = {name for name in after if after[name] != before.get(name)}
    if not changed and row.pk:
        return row
    row.save()
    old = {name: before[name] for name in changed if name in before}
    record(
        actor=actor,
        team=team,
        action="environment.update",
        target=row,
        old=old,
        new={name: after[name] for name in changed},
    )
    return row


@transaction.atomic
def remove_environment(*, actor: Actor, environment: Environment) -> None:
    """Of an image: what was typed and carried along goes, what agents report stays."""
    record(
        actor=actor,
        team=environment.team,
        action="environment.remove",
        target=environment,
        old=shown(environment),
    )
    environment.delete()


def locked(environment: Environment) -> Environment:
    """The row as it is now; the team's row is locked already, so that two first edits make one."""
    rows = Environment.objects.select_for_update(of=("self",)).select_related("team")
    wanted = {"pk": environment.pk} if environment.pk else {"image": environment.image_id}
    return rows.filter(**wanted).first() or environment


def refuse_name(team_id: int, name: str) -> None:
    if Environment.objects.filter(team=team_id, image=None, name=name).exists():
        raise EnvironmentRefused(
            _("There is a template of this name already. Choose another, or edit that one."), field="name"
        )


def write(row: Environment, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    for name in EDITABLE:
        if name not in values:
            continue
        if name == "typed" and values["typed"] != row.typed:
            row.typed_at, row.typed_by = now, actor.user
        setattr(row, name, values[name])
    row.edited_at, row.edited_by = now, actor.user


def shown(row: Environment) -> dict[str, Any]:
    """For the audit log: what is there, JSON-ready."""
    values = {name: getattr(row, name) for name in EDITABLE}
    if isinstance(values["price_per_month"], Decimal):
        values["price_per_month"] = str(values["price_per_month"].normalize())
    return {name: value for name, value in values.items() if value not in ("", None, {})} | {
        "currency": row.currency if row.price_per_month is not None else ""
    }


def image_of_team(team: Team, pk: int) -> Image | None:
    """An image that the team may describe."""
    rows = Image.objects.filter(account__team=team, account__disconnected_at=None).select_related("account__team")
    return rows.filter(pk=pk).first()
