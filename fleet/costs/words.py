"""The words for meters, for where a price and the time of an edge come from, and for what money went into."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet.costs.ledger.intervals import EdgeSource, Meter, PriceSource
from fleet.inventory.words import Words

METERS: Words = {
    Meter.COMPUTE: _("compute"),
    Meter.DISK_RUNNING: _("disks while running"),
    Meter.DISK_STOPPED: _("disks while stopped"),
    Meter.NETWORK_VOLUME: _("network volume"),
    Meter.EGRESS: _("data out"),
    Meter.ADDRESS: _("address"),
    Meter.LICENCE: _("licence"),
    Meter.MINIMUM: _("minimum and rounding"),
    Meter.COMMITMENT: _("commitment"),
    Meter.ADJUSTMENT: _("adjustment"),
    Meter.NOTHING: _("not charged"),
    Meter.UNKNOWN: _("not known"),
}
PRICE_SOURCES: Words = {
    PriceSource.LISTING: _("read from the provider"),
    PriceSource.OFFER: _("from the offer it was rented at"),
    PriceSource.TYPED: _("typed"),
    PriceSource.BILL: _("from a bill"),
    PriceSource.UNKNOWN: _("not told"),
}
EDGE_SOURCES: Words = {
    EdgeSource.PROVIDER: _("the provider's time"),
    EdgeSource.MIDPOINT: _("midpoint of two readings"),
    EdgeSource.FIRST_SEEN: _("first seen"),
    EdgeSource.TYPED: _("typed"),
}
