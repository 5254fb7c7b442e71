"""Which providers an account can be added of, and what each lets a team do, before anybody signs up there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from fleet.inventory.accounts import MANUAL
from fleet.providers.base import Capability, Part, Provider, Sign, StopSemantics
from fleet.providers.registry import adapters

# Accounts of these kinds make themselves.
SELF_MADE = {MANUAL, "sandbox"}
# What people choose a provider by, beside that it can be watched, which goes for all.
ACTS = {
    Capability.CREATE: pgettext_lazy("act", "Rent"),
    Capability.STOP: pgettext_lazy("act", "Stop"),
    Capability.TERMINATE: pgettext_lazy("act", "Terminate"),
    Capability.SAVE_IMAGE: pgettext_lazy("act", "Save images"),
}


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a machine costs when it is stopped, and what that loses."""

    sign: Sign
    words: str
    loses: bool


@dataclass(frozen=True, slots=True)
class Choice:
    kind: str
    label: str
    acts: tuple[tuple[str, bool], ...]
    stopped: Stopped | None


def provider_choices(*, find: str = "", can: str = "") -> list[Choice]:
    """By name. `find` is a part of a name; `can` one of ACTS: a word that is none of them narrows nothing."""
    found = [choice_of(adapter) for adapter in offered() if is_named(adapter, find) and is_able(adapter, can)]
    return sorted(found, key=lambda choice: choice.label.casefold())


def offered() -> Iterator[type[Provider]]:
    return (adapter for kind, adapter in adapters().items() if kind not in SELF_MADE)


def is_named(adapter: type[Provider], find: str) -> bool:
    """By the label in English and in the reader's language, and by what programs call it."""
    wanted = find.strip().casefold()
    return any(wanted in name.casefold() for name in (adapter.label, _(adapter.label), adapter.kind))


def is_able(adapter: type[Provider], can: str) -> bool:
    return can not in ACTS or can in adapter.capabilities


def choice_of(adapter: type[Provider]) -> Choice:
    acts = tuple((str(label), act in adapter.capabilities) for act, label in ACTS.items())
    stopped = stopped_of(adapter.semantics) if Capability.STOP in adapter.capabilities else None
    return Choice(adapter.kind, _(adapter.label), acts, stopped)


def stopped_of(semantics: StopSemantics) -> Stopped:
    billed = semantics.billed_when_stopped
    if Part.COMPUTE in billed:
        sign, words = Sign.PAID, gettext_lazy("all still billed")
    elif billed:
        sign, words = Sign.PAID, gettext_lazy("disks still billed")
    else:
        sign, words = Sign.OFF, gettext_lazy("nothing billed")
    return Stopped(sign, str(words), semantics.stop_loses_data)
