"""What the cleanup page and the API say of a line: how it is known, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.formats import age_text
from fleet.inventory.adapters import can
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.progress import Progress
from fleet.inventory.operations.words import PARTS
from fleet.inventory.words import BILLINGS, DISCONNECTED, STATES
from fleet.pages.cleanup_lines import Kind, Line
from fleet.providers.base import Billing, Capability, InstanceState, Part

Text = str | Promise
TITLES: Mapping[Kind, Text] = {
    Kind.UNPROVED: gettext_lazy("Asked for and not proved"),
    Kind.GHOST: gettext_lazy("Ours, and not at the provider"),
    Kind.UNMANAGED: gettext_lazy("At the provider, and not ours"),
    Kind.STOPPED: gettext_lazy("Off, and still charged"),
}
SAYS: Mapping[Kind, Text] = {
    Kind.UNPROVED: gettext_lazy("a stop, a start or an end that no reading of the provider shows"),
    Kind.GHOST: gettext_lazy("its list leaves them out, or their agents report from machines that are gone"),
    Kind.UNMANAGED: gettext_lazy("nobody registered them; they are shown and never touched"),
    Kind.STOPPED: gettext_lazy("disks, addresses or GPUs that go on costing"),
}


def evidence(line: Line, *, now: datetime) -> str:
    """One sentence on how it is known."""
    return _SAID[line.kind](line, now)


def _unproved(line: Line, now: datetime) -> str:
    assert line.operation is not None
    progress = Progress(line.operation, now)
    said = {"act": line.operation.get_kind_display(), "who": line.operation.requested_label}
    asked = _("%(act)s, asked for by %(who)s") % said if said["who"] else said["act"]
    end = progress.seen_words if line.operation.is_open else progress.steps[-1].detail
    return f"{asked}; {end}" if end else str(asked)


def _ghost(line: Line, now: datetime) -> str:
    account = line.instance.account.name
    if line.heard_at is None:
        return _("%(account)s listed it last %(age)s ago, and leaves it out together with most others") % {
            "account": account,
            "age": age_text((now - line.instance.last_seen_at).total_seconds()),
        }
    said = {"account": account, "age": age_text((now - line.heard_at).total_seconds())}
    if line.instance.state_reason == DISCONNECTED:
        return _("the account %(account)s was disconnected; its agent reported %(age)s ago") % said
    return _("%(account)s does not list it any more; its agent reported %(age)s ago") % said


def _unmanaged(line: Line, _now: datetime) -> str:
    return _("%(account)s lists it: %(state)s, %(billing)s") % {
        "account": line.instance.account.name,
        "state": STATES[InstanceState(line.instance.state)],
        "billing": BILLINGS[Billing(line.instance.billing)],
    }


def _stopped(line: Line, _now: datetime) -> str:
    charged = charged_words(line)
    billing = str(BILLINGS[Billing(line.instance.billing)])
    return _("%(billing)s: %(parts)s") % {"billing": billing, "parts": charged} if charged else billing


def charged_words(line: Line) -> str:
    """Without the GPUs where the provider itself says that only disks are charged."""
    parts = [part for part in line.parts if part is not Part.COMPUTE or line.instance.billing != Billing.STORAGE]
    return ", ".join(str(PARTS[part]) for part in parts)


_SAID = {Kind.UNPROVED: _unproved, Kind.GHOST: _ghost, Kind.UNMANAGED: _unmanaged, Kind.STOPPED: _stopped}


def advice(line: Line) -> str:
    """What to do about it."""
    if line.kind is Kind.UNPROVED:
        return _("Look at its steps, and at the machine in the provider's console.")
    if line.kind is Kind.UNMANAGED:
        return _("Register it if somebody needs it; else end it at the provider.")
    if line.kind is Kind.STOPPED:
        return _stopped_advice(line)
    if line.heard_at is not None:
        return _("Look for it at the provider, in other projects and regions too: something runs there.")
    return _("Look at the permissions of the key. If it was really deleted, say so here.")


def _stopped_advice(line: Line) -> str:
    if may_end(line.instance.account):
        return _("Start it, or save what matters and terminate it.")
    return _("Start it, or save what matters and delete it in the provider's console.")


def may_end(account: ProviderAccount) -> bool:
    """Whether the page for ending its machines would begin anything."""
    return not account.monitor_only and account.disconnected_at is None and can(account, Capability.TERMINATE)
