"""What people say of shared machines: how each is split, and whose the users of their operating systems are."""

from __future__ import annotations

import re
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.costs.attribution.models import UNIX_NAME_LENGTH, MachineSplit, SplitMode, UnixUser
from fleet.costs.attribution.rules import check_whose
from fleet.costs.attribution.sync import lock_attribution, sync_attribution
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team, User

UNIX_NAME = re.compile(rf"[^\s:/]{{1,{UNIX_NAME_LENGTH}}}")


@transaction.atomic
def set_split(*, actor: Actor, instance: Instance, split: str, now: datetime) -> bool:
    """From the present hour on; "" leaves it to the rules. False: it was so already."""
    lock_attribution(instance.team)
    old = MachineSplit.objects.filter(instance=instance).values_list("split", flat=True).first() or ""
    if split == old:
        return False
    if split:
        MachineSplit.objects.update_or_create(instance=instance, defaults={"split": SplitMode(split)})
    else:
        MachineSplit.objects.filter(instance=instance).delete()
    record(
        actor=actor,
        team=instance.team,
        action="instance.split",
        target=instance,
        old={"split": old},
        new={"split": split},
    )
    sync_attribution(team=instance.team, now=now, instances=[instance.pk])
    return True


@transaction.atomic
def map_unix_user(
    *,
    actor: Actor,
    team: Team,
    name: str,
    owner: User | None,
    project: Project | None = None,
    instance: Instance | None = None,
) -> UnixUser:
    """Hours that are not divided yet go to them. Raises ValidationError, by field."""
    lock_attribution(team)
    check_unix_user(team=team, name=name, owner=owner, project=project, instance=instance)
    before = UnixUser.objects.filter(team=team, instance=instance, name=name).select_related("owner", "project").first()
    old = whose(before) if before else {}
    row, _created = UnixUser.objects.update_or_create(
        team=team, instance=instance, name=name, defaults={"owner": owner, "project": project}
    )
    new = {"instance": str(instance or ""), **whose(row)}
    record(actor=actor, team=team, action="unix_user.map", target=row, old=old, new=new)
    return row


@transaction.atomic
def unmap_unix_user(*, actor: Actor, mapping: UnixUser) -> bool:
    """From the present hour on their use is nobody's. False: it was gone already."""
    deleted, _rows = UnixUser.objects.filter(pk=mapping.pk).delete()
    if deleted:
        old = {"instance": str(mapping.instance or ""), **whose(mapping)}
        record(actor=actor, team=mapping.team, action="unix_user.unmap", target=mapping, old=old)
    return bool(deleted)


def check_unix_user(
    *, team: Team, name: str, owner: User | None, project: Project | None, instance: Instance | None
) -> None:
    """Raises ValidationError, by field."""
    check_whose(team=team, project=project, owner=owner)
    if not UNIX_NAME.fullmatch(name):
        message = _("Write a user's name or number as the machine shows it, at most %(n)d characters and no blanks.")
        raise ValidationError({"name": message % {"n": UNIX_NAME_LENGTH}})
    if instance is not None and instance.team_id != team.pk:
        raise ValidationError({"instance": _("Choose a machine of this team.")})
    if owner is None and project is None:
        raise ValidationError({"owner": _("Choose a member or a project: whose use it is.")})


def whose(row: UnixUser) -> dict[str, str]:
    """JSON-ready, for the audit log."""
    return {"owner": str(row.owner or ""), "project": str(row.project or "")}
