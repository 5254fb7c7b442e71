"""The price table that comes with the product: dated, with sources, one edition a team, no price twice."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.inventory.offers.table import lay_out_tables, machines, table_rows
from fleet.providers.gpus import NAMES
from planner.catalogue.prices import rent_prices
from tests.fleet.inventory.conftest import NOON


def test_every_row_has_a_day_a_source_and_a_price():
    assert all(row["priced_on"] and row["origin"] and row["price_per_hour"] > 0 for row in table_rows())


def test_the_planners_prices_are_in_it_and_stand_nowhere_else():
    rows = {(row["provider"], row["instance_type"], row["market"]): row for row in table_rows()}
    node = rows["aws", "p5.48xlarge", "on_demand"]
    assert (node["gpu_model"], node["gpu_count"], node["price_per_hour"]) == ("H100 SXM", 8, Decimal("55.04"))
    assert (node["vcpus"], node["ram_mib"], node["gpu_interconnect"]) == (192, 2048 * 1024, "nvlink")
    skus = {(price.provider, price.sku) for price in rent_prices()}
    assert set(machines()) <= skus


def test_models_that_the_planner_knows_have_our_names():
    planners = {row["gpu_model"] for row in table_rows() if row["priced_on"].year == 2026}
    assert planners <= set(NAMES)


def test_what_is_sold_by_the_card_is_listed_in_the_usual_counts():
    counts = sorted(
        row["gpu_count"] for row in table_rows() if (row["provider"], row["instance_type"]) == ("nebius", "HGX H100")
    )
    assert counts == [1, 2, 4, 8]


def test_of_two_days_the_newer_one_counts():
    (median,) = {row["price_per_hour"] / row["gpu_count"] for row in table_rows() if row["provider"] == "vast"}
    assert median == Decimal("2.4024")


def test_every_team_gets_the_present_edition_once(acme, rival):
    assert lay_out_tables(now=NOON) == 2
    assert lay_out_tables(now=NOON) == 0
    assert Offer.objects.filter(source__team=acme).count() == len(table_rows())
    OfferSource.objects.filter(team=rival).update(edition="old")
    assert lay_out_tables(now=NOON + timedelta(days=1)) == 1
    assert OfferSource.objects.filter(kind=SourceKind.TABLE).count() == 2


def test_a_new_edition_keeps_the_ids_of_what_stays(acme):
    lay_out_tables(now=NOON)
    before = set(Offer.objects.values_list("key", "id"))
    OfferSource.objects.update(edition="old")
    lay_out_tables(now=NOON + timedelta(days=1))
    assert set(Offer.objects.values_list("key", "id")) == before
