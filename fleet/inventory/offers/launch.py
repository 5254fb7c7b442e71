"""Where an offer can be rented from here."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse

from fleet.inventory.adapters import can
from fleet.inventory.offers.models import Offer
from fleet.providers.base import Capability


def is_launchable(offer: Offer) -> bool:
    """Only a live offer of an account that may act, at a provider whose adapter rents."""
    account = offer.source.account
    if account is None or account.monitor_only or not account.enabled or account.disconnected_at:
        return False
    return can(account, Capability.CREATE)


def launch_url(offer: Offer) -> str | None:
    """The form that rents it; None where it cannot be rented from here."""
    if not is_launchable(offer):
        return None
    try:
        address = reverse("launch", args=[offer.source.team.slug])
    except NoReverseMatch:
        return None
    return f"{address}?{urlencode({'offer': offer.pk})}"
