"""What operations are called on a page, and what an act will cost and lose, before anybody clicks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.formats import duration_text, money_text
from fleet.inventory.adapters import adapter_class
from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.permits import ENDS, loses_data
from fleet.inventory.prices import price_now
from fleet.providers.base import Part, StopSemantics

Text = str | Promise
PARTS: Mapping[Part, Text] = {
    Part.COMPUTE: gettext_lazy("GPUs and the machine around them"),
    Part.CONTAINER_DISK: gettext_lazy("container disk"),
    Part.LOCAL_DISK: gettext_lazy("local disk"),
    Part.BOOT_DISK: gettext_lazy("boot disk"),
    Part.DATA_DISK: gettext_lazy("data disk"),
    Part.NETWORK_VOLUME: gettext_lazy("network volume"),
    Part.PUBLIC_ADDRESS: gettext_lazy("public address"),
    Part.MEMORY: gettext_lazy("what is in memory"),
    Part.GPU_SLOT: gettext_lazy("its place: a start needs free GPUs"),
    Part.PREPAID_TERM: gettext_lazy("the rest of the prepaid term"),
    Part.SAVED_IMAGES: gettext_lazy("saved images"),
}
EVENTS: Mapping[str, Text] = {
    "requested": gettext_lazy("Asked for"),
    "sent": gettext_lazy("Sent to the provider"),
    "sent_again": gettext_lazy("Sent again: nothing had come of it"),
    "accepted": gettext_lazy("The provider accepted it, which proves nothing yet"),
    "unanswered": gettext_lazy("No usable answer: whether it was done, readings will show"),
    "partial": gettext_lazy("The provider answered with an error and made a machine all the same"),
    "verifying": gettext_lazy("Reading the provider until it shows it"),
    "seen": gettext_lazy("The provider shows something else than before"),
    "waiting": gettext_lazy("The provider asks to wait"),
    "read_failed": gettext_lazy("The provider cannot be read; it is tried again"),
    "found": gettext_lazy("Its machine was found in the provider's list"),
    "absent": gettext_lazy("The provider no longer names it"),
    "withheld": gettext_lazy("Not sent again: it may not be sent at present"),
    "proved": gettext_lazy("Proved"),
    "failed": gettext_lazy("Failed"),
    "reopened": gettext_lazy("It is back again: proving it anew"),
    "superseded": gettext_lazy("Another act took its place"),
    "abandoned": gettext_lazy("Given up by a person"),
}
# What showed it; "unproved": nothing could, and that is said.
PROOFS: Mapping[str, Text] = {
    "state": gettext_lazy("the provider shows it in its new state"),
    "stopped": gettext_lazy("the provider shows it as stopped; what it costs now, it does not say"),
    "gone": gettext_lazy("several complete lists in a row do not name it"),
    "terminated": gettext_lazy("the provider shows it as terminated"),
    "restarted": gettext_lazy("the provider shows a newer start"),
    "returned": gettext_lazy("it was seen to go down and to come back"),
    "agent": gettext_lazy("its agent reports a new boot"),
    "image": gettext_lazy("the provider lists the image as ready"),
    "unproved": gettext_lazy(
        "accepted, and the machine runs; this provider does not show whether a machine was restarted"
    ),
}
FAILURES: Mapping[str, Text] = {
    "auth_failed": gettext_lazy("the provider does not accept the key"),
    "scope_missing": gettext_lazy("the key lacks a permission"),
    "wrong_state": gettext_lazy("the machine's state does not allow it"),
    "no_capacity": gettext_lazy("the provider has none free"),
    "quota_or_funds": gettext_lazy("quota or balance do not allow it"),
    "invalid": gettext_lazy("the provider refused what was sent"),
    "not_found": gettext_lazy("the provider does not know it"),
    "rate_limited": gettext_lazy("the provider asks to wait"),
    "unavailable": gettext_lazy("the provider does not answer as it should"),
    "in_use": gettext_lazy("the machine was in use again before the provider was told"),
    "use_unknown": gettext_lazy("it is not known any more whether it is idle"),
    "launch_error": gettext_lazy("the machine came up in an error"),
    "image_failed": gettext_lazy("the image failed"),
    "gone": gettext_lazy("the machine is no more"),
    "monitor_only": gettext_lazy("its account is for looking only"),
    "paused": gettext_lazy("reading its account is paused"),
    "held": gettext_lazy("a hold keeps the machine"),
    "hook_failed": gettext_lazy("the machine's own preparation failed, and nobody knows what was saved"),
    "loses_data": gettext_lazy("it destroys data, and nobody has agreed to that"),
    "launch_blocked": gettext_lazy("a budget lets nothing be launched or started"),
    "unmanaged": gettext_lazy("the machine is registered no more"),
    "unsupported": gettext_lazy("the provider has no such act"),
    "doubted": gettext_lazy("that it is missing proves nothing: the list is in doubt, or the key was changed"),
    "disconnected": gettext_lazy("its account was disconnected before it was proved"),
    "superseded": gettext_lazy("another act took its place"),
    "abandoned": gettext_lazy("given up by a person"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """What an act means, in words and figures. None = not known, which is not nothing. Prices are an hour of the whole machine.

    `must_confirm`: data is destroyed; the name of the machine has to be typed (pages) or `accept_loss` be set (API).
    """

    kind: str
    currency: str
    price_now: Decimal | None
    price_after: Decimal | None
    saved: Decimal | None
    still_billed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    must_confirm: bool = False
    confirmed_by_bills: bool = False
    source: str = ""

    @property
    def money_words(self) -> str:
        """One sentence on what changes an hour."""
        if self.price_after is None:
            return _("What an hour costs afterwards is not known.")
        after = money_text(self.price_after, self.currency)
        if self.saved is None or self.saved < 0:
            return _("An hour costs %(after)s from then on.") % {"after": after}
        said = {"saved": money_text(self.saved, self.currency), "after": after}
        if not self.price_after:
            return _("Saves %(saved)s an hour; nothing is charged from then on.") % said
        if not self.saved:
            return _("Nothing is saved: an hour goes on costing %(after)s.") % said
        return _("Saves %(saved)s an hour; %(after)s an hour goes on.") % said


def consequences(instance: Instance, kind: str) -> Consequences:
    """Of an act on this machine as it is now, in the reader's language. `instance.account` is read."""
    act, semantics = OperationKind(kind), adapter_class(instance.account.kind).semantics
    before, after = price_now(instance), price_after(instance, act, semantics)
    return Consequences(
        kind=act,
        currency=instance.currency,
        price_now=before,
        price_after=after,
        saved=None if before is None or after is None else before - after,
        still_billed=names(still_billed(act, semantics)),
        lost=names(lost(act, semantics)),
        notes=tuple(notes(act, semantics)),
        must_confirm=loses_data(semantics, act),
        confirmed_by_bills=semantics.confirmed,
        source=semantics.source,
    )


def price_after(instance: Instance, kind: OperationKind, semantics: StopSemantics) -> Decimal | None:
    """An hour once the act is proved."""
    if kind is OperationKind.TERMINATE:
        return None if semantics.billed_after_terminate else Decimal(0)
    if kind is OperationKind.STOP:
        if Part.COMPUTE in semantics.billed_when_stopped:
            return instance.price_per_hour
        return instance.storage_price_per_hour if semantics.billed_when_stopped else Decimal(0)
    return instance.price_per_hour if kind is OperationKind.START else price_now(instance)


def still_billed(kind: OperationKind, semantics: StopSemantics) -> frozenset[Part]:
    if kind is OperationKind.TERMINATE:
        return semantics.billed_after_terminate
    return semantics.billed_when_stopped if kind is OperationKind.STOP else frozenset()


def lost(kind: OperationKind, semantics: StopSemantics) -> frozenset[Part]:
    if kind is OperationKind.TERMINATE:
        return semantics.lost_on_terminate
    return semantics.lost_on_stop if kind is OperationKind.STOP else frozenset()


def notes(kind: OperationKind, semantics: StopSemantics) -> Iterable[str]:
    if kind in ENDS and semantics.minimum_seconds:
        yield _("At least %(time)s are billed for each start.") % {"time": duration_text(semantics.minimum_seconds)}
    if kind in ENDS and semantics.quantum_seconds > 1:
        yield _("Use is rounded up to %(time)s.") % {"time": duration_text(semantics.quantum_seconds)}
    if kind is OperationKind.START and Part.GPU_SLOT in semantics.lost_on_stop:
        yield _("It starts only if the provider has free GPUs.")
    if kind is OperationKind.TERMINATE:
        yield _("It cannot be undone.")
    if kind in ENDS and not semantics.confirmed:
        yield _("This is what the provider documents; no bill has confirmed it yet.")
    if kind in ENDS and semantics.zero_balance:
        yield in_readers_language(semantics.zero_balance)


def names(parts: frozenset[Part]) -> tuple[str, ...]:
    return tuple(str(word) for part, word in PARTS.items() if part in parts)


def event_words(kind: str) -> str:
    return str(EVENTS.get(kind, kind))


def failure_words(kind: str) -> str:
    return str(FAILURES.get(kind, kind.replace("_", " ")))
