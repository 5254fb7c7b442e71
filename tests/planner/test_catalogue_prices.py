"""Bundled prices: each has a day and a source, belongs to a known GPU, and is never made up."""

from __future__ import annotations

from decimal import Decimal

from planner.catalogue.gpus import gpus
from planner.catalogue.prices import price_range, prices_of, purchase_prices, rent_prices


def test_every_price_is_of_a_known_gpu() -> None:
    assert {price.gpu_id for price in rent_prices()} <= set(gpus())
    assert set(purchase_prices()) <= set(gpus())


def test_a_range_names_its_samples() -> None:
    found = price_range("h100-sxm-80", kinds=["on-demand"])
    assert found is not None
    assert found.lowest.per_gpu_hour <= found.median <= found.highest.per_gpu_hour
    assert (found.lowest.per_gpu_hour, found.lowest.provider) == (Decimal("3.49"), "runpod")
    assert found.oldest.isoformat() == "2026-09-06"


def test_spot_and_marketplaces_only_where_asked_for() -> None:
    kinds = {price.kind for price in prices_of("h100-sxm-80", kinds=["on-demand", "spot"])}
    assert kinds == {"on-demand", "spot"}


def test_an_unknown_price_is_none() -> None:
    assert price_range("kunlun-p800-96", kinds=["on-demand"]) is None


def test_a_node_is_not_sold_by_the_card() -> None:
    [node] = [price for price in rent_prices() if price.sku == "p5.48xlarge"]
    assert [node.machines_for(count) for count in (1, 8, 16)] == [None, 1, 2]


def test_cards_of_a_marketplace_come_in_any_number_up_to_a_node() -> None:
    card = next(price for price in prices_of("rtx-4090-24", kinds=["community"]) if price.provider == "runpod")
    assert [card.machines_for(count) for count in (1, 4, 8, 16)] == [1, 1, 1, 2]
