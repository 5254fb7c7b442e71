"""How acts are named on buttons and in questions, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, pgettext_lazy

from fleet.formats import money_text
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.words import Consequences
from fleet.inventory.words import BILLINGS, STATES
from fleet.providers.base import ImageState

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

# Of what is being saved; of machines there are the words of the inventory.
IMAGE_STATES: Mapping[str, Text] = {
    ImageState.READY: pgettext_lazy("image", "a ready image"),
    ImageState.PENDING: pgettext_lazy("image", "an image in the making"),
    ImageState.FAILED: pgettext_lazy("image", "a failed image"),
    ImageState.UNKNOWN: pgettext_lazy("image", "an image in an unknown state"),
}


def seen_words(kind: str, state: str, billing: str = "") -> str:
    """What a reading showed of the machine, or of the image that is being saved; a word that is none of ours as it is."""
    known: Mapping[Any, Text] = IMAGE_STATES if kind == OperationKind.SAVE_IMAGE else STATES
    said = {"state": known.get(state, state), "billing": BILLINGS.get(billing, billing)}  # type: ignore[call-overload]
    return (
        _("the provider shows %(state)s, %(billing)s") % said if billing else _("the provider shows %(state)s") % said
    )


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
