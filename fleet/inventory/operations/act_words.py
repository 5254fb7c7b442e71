"""How acts are named on buttons and in questions, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, pgettext_lazy

from fleet.formats import money_text
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.words import Consequences

Text = str | Promise
VERBS: Mapping[str, Text] = {
    OperationKind.LAUNCH: pgettext_lazy("act", "Launch"),
    OperationKind.START: pgettext_lazy("act", "Start"),
    OperationKind.STOP: pgettext_lazy("act", "Stop"),
    OperationKind.TERMINATE: pgettext_lazy("act", "Terminate"),
    OperationKind.REBOOT: pgettext_lazy("act", "Restart"),
    OperationKind.SAVE_IMAGE: pgettext_lazy("act", "Save image"),
}
# The question itself, before what it costs.
ABOUT: Mapping[str, Text] = {
    OperationKind.START: pgettext_lazy("act", "The provider is asked to run it again."),
    OperationKind.STOP: pgettext_lazy(
        "act", "The provider is asked to stop it, in the way that ends the charge for GPUs."
    ),
    OperationKind.TERMINATE: pgettext_lazy("act", "The provider is asked to delete the machine."),
    OperationKind.REBOOT: pgettext_lazy("act", "What runs on it ends, and what is in memory is lost; its disks stay."),
    OperationKind.SAVE_IMAGE: pgettext_lazy(
        "act", "An image of its disks is made, from which machines can start. The provider may charge for keeping it."
    ),
}


def verb(kind: str) -> str:
    return str(VERBS.get(kind, kind))


def question(kind: str, name: str) -> str:
    return _("%(verb)s %(name)s?") % {"verb": verb(kind), "name": name}


def do_it(kind: str, *, loses: bool) -> str:
    """On the button that does it: the loss is repeated there."""
    if not loses:
        return verb(kind)
    return _("Terminate and lose local data") if kind == OperationKind.TERMINATE else _("Stop and lose local data")


def says(told: Consequences) -> Iterator[str]:
    """What stands beside the button, shortest first."""
    comma = pgettext("list", ", ")
    if told.kind == OperationKind.REBOOT:
        yield _("Ends what runs on it.")
    yield price_words(told)
    if told.lost:
        yield _("Loses: %(parts)s.") % {"parts": comma.join(told.lost)}
    if told.still_billed:
        yield _("Still billed: %(parts)s.") % {"parts": comma.join(told.still_billed)}


def price_words(told: Consequences) -> str:
    """An act that changes no price says so in other words than a stop that saves nothing."""
    unchanged = told.kind in (OperationKind.REBOOT, OperationKind.SAVE_IMAGE)
    if not unchanged:
        return told.money_words
    if told.price_now is None:
        return _("What an hour costs stays as it is.")
    return _("An hour goes on costing %(price)s.") % {"price": money_text(told.price_now, told.currency)}
