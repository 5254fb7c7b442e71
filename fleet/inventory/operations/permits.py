"""What must hold before an act on a machine is begun. What people may take back is asked again before each call: withholding.py."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from fleet.inventory.adapters import adapter_class, can
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Hold, Instance, ProviderAccount
from fleet.inventory.operations.journal import fail_over
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind
from fleet.inventory.operations.refusals import (
    Disconnected,
    Gone,
    Held,
    KeyTaken,
    LosesData,
    MonitorOnly,
    NotAdmin,
    OperationOpen,
    Paused,
    Unmanaged,
    Unsupported,
)
from fleet.providers.base import Capability, StopSemantics
from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role

CAPABILITIES = {
    OperationKind.LAUNCH: Capability.CREATE,
    OperationKind.START: Capability.START,
    OperationKind.STOP: Capability.STOP,
    OperationKind.TERMINATE: Capability.TERMINATE,
    OperationKind.REBOOT: Capability.REBOOT,
    OperationKind.SAVE_IMAGE: Capability.SAVE_IMAGE,
}
ENDS = frozenset({OperationKind.STOP, OperationKind.TERMINATE})
# What runs on the machine ends with each of them, so that a hold has a say.
ASKS_HOLDS = ENDS | {OperationKind.REBOOT}
# What an act may take the place of: nobody has to wait for a start that never comes before the machine can be stopped.
# An image that is being saved is never cut short; one that no list has named by then is not being saved.
SUPERSEDES = {
    OperationKind.STOP: frozenset({OperationKind.LAUNCH, OperationKind.START, OperationKind.REBOOT}),
    OperationKind.TERMINATE: frozenset(
        {OperationKind.LAUNCH, OperationKind.START, OperationKind.REBOOT, OperationKind.STOP}
    ),
}


IMAGE_SHOWS_WITHIN = timedelta(minutes=15)


def refuse_account(account: ProviderAccount, kind: OperationKind) -> None:
    """Raises Disconnected, Unsupported, MonitorOnly or Paused."""
    if account.disconnected_at:
        raise Disconnected(_("The account %(name)s is disconnected. Connect it again first.") % {"name": account.name})
    if not can(account, CAPABILITIES[kind]):
        raise Unsupported(_unsupported(account, kind))
    if account.monitor_only:
        raise MonitorOnly(
            _("The account %(name)s is for looking only. Under Settings, Providers, it can be allowed to act.")
            % {"name": account.name}
        )
    if not account.enabled:
        raise Paused(_("Reading the account %(name)s is paused. Read it again first.") % {"name": account.name})


def _unsupported(account: ProviderAccount, kind: OperationKind) -> str:
    if kind is OperationKind.STOP and can(account, Capability.TERMINATE):
        return _("%(account)s cannot stop machines, only terminate them.") % {"account": account.name}
    return _("Rackrent cannot do this at %(account)s: do it in the provider's console.") % {"account": account.name}


def refuse_machine(
    machine: Instance, kind: OperationKind, *, actor: Actor, accept_loss: bool, override_reason: str, now: datetime
) -> None:
    """Raises Gone, Unmanaged, LosesData, Held or NotAdmin."""
    refuse_untouchable(machine)
    if kind in ENDS:
        refuse_loss(machine, kind, accept_loss=accept_loss)
    if kind in ASKS_HOLDS:
        refuse_held(machine, actor=actor, override_reason=override_reason, now=now)


def refuse_untouchable(machine: Instance) -> None:
    """Raises Gone or Unmanaged."""
    if machine.gone_at:
        raise Gone(_("%(name)s is no more.") % {"name": machine.name})
    refuse_unmanaged(machine)


def refuse_unmanaged(machine: Instance) -> None:
    if not machine.managed:
        raise Unmanaged(
            _("Nobody registered %(name)s, and what nobody registered is never touched. Register it first.")
            % {"name": machine.name}
        )


def refuse_loss(machine: Instance, kind: OperationKind, *, accept_loss: bool) -> None:
    if accept_loss or not loses_data(adapter_class(machine.account.kind).semantics, kind):
        return
    raise LosesData(
        _("This destroys data on %(name)s. Say that it may go, or save an image first.") % {"name": machine.name}
    )


def loses_data(semantics: StopSemantics, kind: OperationKind) -> bool:
    if kind is OperationKind.TERMINATE:
        return semantics.terminate_loses_data
    return kind is OperationKind.STOP and semantics.stop_loses_data


def refuse_held(machine: Instance, *, actor: Actor, override_reason: str, now: datetime) -> None:
    hold = holds_in_force(now=now).filter(instance=machine).select_related("owner").order_by("started_at").first()
    if hold is None:
        return
    if not override_reason:
        raise Held(held_words(machine, hold))
    # A token's scope was looked at where it was read; it is nobody's membership.
    if actor.user is not None and not is_admin(actor, machine.team_id):
        raise NotAdmin(_("Only an admin of the team may override a hold."))


def is_admin(actor: Actor, team_id: int) -> bool:
    return Membership.objects.filter(user=actor.user, team=team_id, role=Role.ADMIN).exists()


def held_words(machine: Instance, hold: Hold) -> str:
    said = {
        "name": machine.name,
        "owner": hold.owner.display_name if hold.owner else hold.get_kind_display(),
        "reason": hold.reason or _("no reason given"),
    }
    return _("%(name)s is held by %(owner)s (%(reason)s). Release the hold, or let an admin override it.") % said


def make_way(machine: Instance, kind: OperationKind, *, actor: Actor, now: datetime) -> None:
    """Ends what this act takes the place of. Raises OperationOpen where it has to wait. The machine's row is locked."""
    under_way = (
        Operation.objects.filter(instance=machine, state__in=OPEN_STATES).select_related("team", "account").first()
    )
    if under_way is None:
        return
    refuse_busy(machine, kind, under_way, now=now)
    fail_over(under_way, "superseded", OperationKind(kind).value, at=now, event="superseded", actor=actor)


def refuse_busy(machine: Instance, kind: OperationKind, under_way: Operation, *, now: datetime | None = None) -> None:
    """Raises OperationOpen where the act cannot take the place of what is under way."""
    lost = kind in ENDS and is_lost_image(under_way, now=now or timezone.now())
    if not lost and under_way.kind not in SUPERSEDES.get(kind, ()):
        said = {"name": machine.name, "act": under_way.get_kind_display()}
        raise OperationOpen(_("“%(act)s” of %(name)s is still under way.") % said, under_way)


def is_lost_image(operation: Operation, *, now: datetime) -> bool:
    """Nobody waits for an image of which only the request is known before a machine that costs money can be stopped."""
    is_unnamed = operation.kind == OperationKind.SAVE_IMAGE and not operation.result_id
    return is_unnamed and now - operation.requested_at >= IMAGE_SHOWS_WITHIN


def refuse_twice(known: Operation, kind: OperationKind, machine: Instance | None) -> None:
    """The same key for something else is a mistake of the caller."""
    if known.kind != kind or (machine is not None and known.instance_id != machine.pk):
        raise KeyTaken(_("This key was used for another request. Use a new one for each."))
