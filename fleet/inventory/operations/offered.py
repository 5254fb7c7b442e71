"""What an order was chosen from: kept with the launch, so that its price is still known when the offer is gone."""

from __future__ import annotations

from typing import Any

from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import Offer
from fleet.providers.base import CreateSpec

KEPT = ("instance_type", "gpu_model", "gpu_count", "vcpus", "ram_mib", "disk_gb", "currency")


def offer_of(account: ProviderAccount, spec: CreateSpec) -> dict[str, Any]:
    """The account's live offer that `spec` names, JSON-ready; {} where none was read: what it costs is not known then."""
    named = {"external_id": spec.offer_id, "region": spec.region, "market": spec.market}
    offer = Offer.objects.filter(source__account=account, **named).order_by("-seen_at").first()
    return {} if offer is None else kept_of(offer)


def kept_of(offer: Offer) -> dict[str, Any]:
    price = offer.price_per_hour
    return {
        **{name: getattr(offer, name) for name in KEPT},
        "price_per_hour": None if price is None else str(price),
        "seen_at": offer.seen_at.isoformat(),
    }
