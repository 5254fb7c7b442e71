"""The words for what people type, and for what a price is of."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet.costs.ledger.intervals import Meter, Unit
from fleet.costs.words import METERS
from fleet.inventory.words import Words

KINDS: Words = {
    kind: METERS[kind] for kind in (Meter.NETWORK_VOLUME, Meter.EGRESS, Meter.ADDRESS, Meter.LICENCE, Meter.COMMITMENT)
}
UNITS: Words = {
    Unit.HOUR: _("an hour"),
    Unit.MONTH: _("a month"),
    Unit.GB_MONTH: _("a GB and month"),
    Unit.ONCE: _("once"),
}
