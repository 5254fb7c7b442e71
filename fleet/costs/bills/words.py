"""The words for bills: where they come from, what their lines are for, how lines compare, and why they differ."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet.costs.bills.matching import MeterClass, ReasonKind, Status
from fleet.inventory.words import Words
from fleet.providers.base import ChargeKind

CHARGE_KINDS: Words = {
    ChargeKind.COMPUTE: _("compute"),
    ChargeKind.DISK: _("disks"),
    ChargeKind.NETWORK_VOLUME: _("network volume"),
    ChargeKind.EGRESS: _("data out"),
    ChargeKind.ADDRESS: _("address"),
    ChargeKind.LICENCE: _("licence"),
    ChargeKind.COMMITMENT: _("commitment"),
    ChargeKind.CREDIT: _("credit"),
    ChargeKind.REFUND: _("refund"),
    ChargeKind.TAX: _("tax"),
    ChargeKind.OTHER: _("something else"),
}
CLASSES: Words = {
    MeterClass.COMPUTE: _("compute"),
    MeterClass.DISK: _("disks"),
    MeterClass.NETWORK_VOLUME: _("network volume"),
    MeterClass.EGRESS: _("data out"),
    MeterClass.ADDRESS: _("address"),
    MeterClass.LICENCE: _("licence"),
    MeterClass.COMMITMENT: _("commitment"),
    MeterClass.CREDIT: _("credit or refund"),
    MeterClass.TAX: _("tax"),
    MeterClass.OTHER: _("something else"),
    MeterClass.ALL: _("all of it"),
}
STATUSES: Words = {
    Status.MATCHED: _("Matched"),
    Status.MISSING_HERE: _("Missing here"),
    Status.MISSING_THERE: _("Missing there"),
    Status.DIFFERS: _("Differs"),
}
REASONS: Words = {
    ReasonKind.TOLERANCE: _("Same within a cent or 1%."),
    ReasonKind.CREDIT: _("A credit or a refund of the provider."),
    ReasonKind.TAX: _("Tax, which is on bills alone."),
    ReasonKind.FREE_TIER: _("A part is free, and was counted from the first GB."),
    ReasonKind.BORDER: _(
        "The provider's month ends at another hour: it comes with the next bill, or came with the last."
    ),
    ReasonKind.CURRENCY: _("Counted in another currency, and converted at another rate than the provider's."),
    ReasonKind.SILENT: _("The account was silent meanwhile: nobody saw when it started or stopped."),
    ReasonKind.EDGES: _("Started or stopped between two readings: so far may the time be off."),
    ReasonKind.MINIMUM: _("The provider rounds up, or charges a minimum for each start."),
    ReasonKind.TIME: _("The same price, for another time than was counted."),
    ReasonKind.PRICE: _("The same time, at another price."),
    ReasonKind.UNPRICED: _("It ran, at a price that nobody told."),
    ReasonKind.NOT_READ: _("Not read here: no listing tells it."),
}
