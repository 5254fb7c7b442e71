"""What the vocabulary of the provider seam is called on a page."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import Billing, InstanceState, Market, Tenancy
from fleet.providers.drift import Drift

Words = Mapping[StrEnum, str | Promise]

STATES: Words = {
    InstanceState.PROVISIONING: _("provisioning"),
    InstanceState.STARTING: _("starting"),
    InstanceState.RUNNING: _("running"),
    InstanceState.STOPPING: _("stopping"),
    InstanceState.STOPPED: pgettext_lazy("machine", "stopped"),
    InstanceState.TERMINATING: _("terminating"),
    InstanceState.TERMINATED: _("terminated"),
    InstanceState.ERROR: _("error"),
    InstanceState.UNREACHABLE: _("unreachable"),
    InstanceState.UNKNOWN: pgettext_lazy("machine", "unknown"),
}
BILLINGS: Words = {
    Billing.FULL: _("billed in full"),
    Billing.STORAGE: _("only disks billed"),
    Billing.NONE: _("not billed"),
    Billing.UNKNOWN: _("billing unknown"),
}
MARKETS: Words = {
    Market.ON_DEMAND: _("on demand"),
    Market.SPOT: _("spot"),
    Market.RESERVED: _("reserved"),
    Market.PREPAID: _("prepaid"),
    Market.UNKNOWN: pgettext_lazy("market", "unknown"),
}
TENANCIES: Words = {
    Tenancy.DEDICATED_HOST: _("whole host"),
    Tenancy.DEDICATED_GPU: _("own GPUs on a shared host"),
    Tenancy.COMMUNITY_HOST: _("community host"),
    Tenancy.FRACTION: _("part of a GPU"),
    Tenancy.UNKNOWN: pgettext_lazy("tenancy", "unknown"),
}
# Reasons that we give ourselves; everything else in state_reason is the provider's own text.
UNLISTED, DISCONNECTED = "rackrent:unlisted", "rackrent:disconnected"
DOUBTED, DECLARED_GONE = "rackrent:doubted", "rackrent:declared_gone"
OUR_REASONS: Mapping[str, str | Promise] = {
    UNLISTED: _("no longer in the provider's list"),
    DISCONNECTED: _("its account was disconnected"),
    DOUBTED: _("left out of the provider's list together with most others: nobody can say what it is doing"),
    DECLARED_GONE: _("a person said that it is gone"),
}


def choices(words: Words) -> list[tuple[str, str | Promise]]:
    return [(member.value, word) for member, word in words.items()]


def sharing_word(exclusive: bool | None) -> str:
    """The plain word for tenancy that stands wherever there is room for one word only."""
    if exclusive is None:
        return str(pgettext_lazy("tenancy", "unknown"))
    return str(_("exclusive") if exclusive else _("shared"))


def reason_words(state_reason: str) -> str:
    return str(OUR_REASONS.get(state_reason, state_reason))


def drift_words(what: str, found: str, rented: str) -> str:
    """What the driver names against what was rented; `what` is a word of fleet.providers.drift.Drift."""
    said = {"found": found, "rented": rented}
    if what == Drift.MEMORY:
        return gettext("GPUs with %(found)s GiB, rented with %(rented)s GiB") % said
    if what == Drift.MORE:
        return gettext("%(found)s GPUs, %(rented)s rented") % said
    return gettext("%(found)s, rented as %(rented)s") % said
