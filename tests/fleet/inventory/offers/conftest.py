"""Offers of acme as a test needs them, and a search over them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.inventory.offers.search import Ranked, Search
from fleet.inventory.offers.search_form import SearchForm
from fleet.inventory.offers.sheet import About
from tests.fleet.inventory.conftest import NOON

DAY = date(2026, 11, 1)
ABOUT = About(provider="lambda", currency="USD", priced_on=DAY, origin="prices.csv")


@pytest.fixture
def prices(acme) -> OfferSource:
    """A list that acme imported."""
    return OfferSource.objects.create(team=acme, kind=SourceKind.IMPORT, name="Prices", read_at=NOON)


@pytest.fixture
def offer(prices) -> Callable[..., Offer]:
    """offer("a", price="2.50", gpu_count=8) is one row of that list; what is not given, the list does not say."""

    def make(key: str, *, price: str | None = "2.00", **fields: object) -> Offer:
        values: dict[str, object] = {
            "source": prices,
            "provider": "lambda",
            "instance_type": key,
            "gpu_model": "H100 SXM",
            "gpu_count": 1,
            "gpu_memory_mib": 81_559,
            "currency": "USD",
            "seen_at": NOON,
            **fields,
        }
        return Offer.objects.create(key=key, price_per_hour=price and Decimal(price), **values)

    return make


@pytest.fixture
def find(acme) -> Callable[..., list[Ranked]]:
    """find(gpu="H100", gpus=8) is what the search finds, in its order."""

    def search(**asked: object) -> list[Ranked]:
        form = SearchForm({name: str(value) for name, value in asked.items()})
        assert form.is_valid(), form.errors
        wanted = Search.of(form, [acme.pk])
        results = wanted.run()
        return wanted.ranked([one.id for one in results.found], results)

    return search


@pytest.fixture
def found(find) -> Callable[..., list[str]]:
    """The same as the names of the offers."""
    return lambda **asked: [one.offer.key for one in find(**asked)]
