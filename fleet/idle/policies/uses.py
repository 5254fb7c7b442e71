"""What people say of one machine: how it is used, and until when it may run."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.idle.policies.models import MachineUse, UseMode
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record

LONGEST_LEASE = timedelta(days=366)


@transaction.atomic
def set_machine_use(
    *, actor: Actor, instance: Instance, mode: str, lease_until: datetime | None, now: datetime
) -> MachineUse:
    """`mode` "": as its policy says. `lease_until` None: no end. What is not different is no change. Raises ValidationError by field."""
    if mode and mode not in UseMode.values:
        raise ValidationError({"mode": _("Choose one of: %(words)s.") % {"words": ", ".join(UseMode.values)}})
    row = _locked(instance, now)
    if lease_until != row.lease_until:
        _check_lease(instance, lease_until, now)
    return _write(row, actor=actor, instance=instance, mode=mode, lease_until=lease_until, now=now)


@transaction.atomic
def extend_lease(*, actor: Actor, instance: Instance, until: datetime, now: datetime) -> MachineUse:
    """Raises ValidationError where that would not be later than it ends now."""
    row = _locked(instance, now)
    if row.lease_until is not None and until <= row.lease_until:
        raise ValidationError({"lease_until": _("It may run longer than that already: choose a later moment.")})
    _check_lease(instance, until, now)
    return _write(row, actor=actor, instance=instance, mode=row.mode, lease_until=until, now=now)


def _locked(instance: Instance, now: datetime) -> MachineUse:
    MachineUse.objects.get_or_create(instance=instance, defaults={"changed_at": now})
    return MachineUse.objects.select_for_update().get(instance=instance)


def _check_lease(instance: Instance, until: datetime | None, now: datetime) -> None:
    if until is None:
        return
    if not instance.managed:
        raise ValidationError({"lease_until": _("Nobody registered this machine, so it is never touched: register it, then say until when it may run.")})  # fmt: skip
    if until <= now:
        raise ValidationError({"lease_until": _("That moment is past; choose one to come.")})
    if until > now + LONGEST_LEASE:
        raise ValidationError({"lease_until": _("That is more than a year from now: choose an earlier moment.")})


def _write(
    row: MachineUse, *, actor: Actor, instance: Instance, mode: str, lease_until: datetime | None, now: datetime
) -> MachineUse:
    old, new = _plain(row.mode, row.lease_until), _plain(mode, lease_until)
    if old == new:
        return row
    row.mode, row.lease_until, row.changed_at, row.changed_by = mode, lease_until, now, actor.user
    row.save()
    changed = [name for name in new if old[name] != new[name]]
    record(
        actor=actor,
        team=instance.team,
        action="machine_use.change",
        target=instance,
        old={name: old[name] for name in changed},
        new={name: new[name] for name in changed},
    )
    return row


def _plain(mode: str, lease_until: datetime | None) -> dict[str, str | None]:
    return {"used_as": mode or None, "runs_until": lease_until.isoformat() if lease_until else None}
