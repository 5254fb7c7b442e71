"""Offers over the API: the page's search, pages in its order, lists imported whole, ratings."""

from __future__ import annotations

import pytest

from fleet.inventory.offers.models import Offer, OfferSource, ProviderScore, SourceKind
from fleet.inventory.offers.search_form import SearchForm
from fleet.teams.models import AuditEntry, Scope
from tests.api.conftest import NOW

OFFERS, SOURCES, SCORES = "/api/v1/offers/", "/api/v1/offer-sources/", "/api/v1/provider-scores/"
COLUMNS = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot\n"
LIST = {
    "name": "November",
    "provider": "lambda",
    "priced_on": "2026-11-01",
    "csv": COLUMNS + "x,eu,1,4,16,1,L4,24,False\n",
}


@pytest.fixture
def many(acme):
    """Seven offers, the dearest first in the table."""
    source = OfferSource.objects.create(team=acme, kind=SourceKind.IMPORT, name="Prices")
    Offer.objects.bulk_create(
        Offer(
            source=source, key=str(number), provider="lambda", gpu_model="H100 SXM", gpu_count=number,
            price_per_hour=number * (9 - number), currency="USD", seen_at=NOW,
        )
        for number in range(7, 0, -1)
    )  # fmt: skip
    return source


@pytest.fixture
def script(acme, as_token):
    return as_token(acme, Scope.OPERATE)


def send(client, address, body):
    return client.post(address, body, content_type="application/json")


def test_an_offer_says_how_it_fits_and_why(many, script):
    row = script.get(OFFERS, {"gpus": 7, "vcpus": 8}).json()["results"][0]
    assert (row["gpu_count"], row["price_per_hour"], row["price_per_gpu_hour"]) == (7, "14.000000", "2.000000")
    assert row["reasons"][0] == {"part": "gpu", "weight": 5, "value": 1.0, "why": "7 of its 7 GPUs are asked for"}
    assert {"code": "vcpus", "known": False, "text": "vCPUs are not told"} in row["warnings"]
    assert row["missing"] == ["vcpus"]
    assert row["launchable"] is False
    assert 0 < row["score"] < 100


def test_words_are_in_the_language_asked_for(many, script):
    row = script.get(OFFERS, {"gpus": 7}, headers={"Accept-Language": "zh-hans"}).json()["results"][0]
    assert row["reasons"][0]["why"] == "它有 7 块 GPU，需要其中 7 块"


@pytest.mark.parametrize("ordering", ["score", "price", "gpu_price", "memory", "network", "age"])
def test_pages_follow_each_other_in_every_order(many, script, ordering):
    whole = [row["id"] for row in script.get(OFFERS, {"ordering": ordering}).json()["results"]]
    walked, address = [], f"{OFFERS}?ordering={ordering}&limit=2"
    while address:
        page = script.get(address).json()
        walked += [row["id"] for row in page["results"]]
        address = page["next"]
    assert walked == whole
    assert len(whole) == 7


def test_an_offer_that_goes_between_two_pages_shifts_nothing(many, script):
    first = script.get(OFFERS, {"ordering": "price", "limit": 3}).json()
    Offer.objects.filter(pk=first["results"][0]["id"]).delete()
    second = script.get(first["next"]).json()
    assert [float(row["price_per_hour"]) for row in first["results"] + second["results"][:1]] == [8, 14, 14, 18]


def test_a_cursor_belongs_to_its_search(many, script):
    after = script.get(OFFERS, {"limit": 1}).json()["next"]
    answer = script.get(after.replace("limit=1", "limit=1&gpus=2"))
    assert (answer.status_code, answer.json()["field"]) == (400, "cursor")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"gpus": "many"}, "gpus"),
        ({"market": "flea"}, "market"),
        ({"ordering": "-score"}, "ordering"),
        ({"max_price": "0"}, "max_price"),
        ({"w_price": "11"}, "w_price"),
        ({"sort": "price"}, "sort"),
    ],
)
def test_what_cannot_be_searched_for_is_named(many, script, asked, field):
    answer = script.get(OFFERS, asked)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_every_field_of_the_page_is_a_parameter(client, db):
    schema = client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    named = {one["name"] for one in schema["paths"][OFFERS]["get"]["parameters"]}
    assert set(SearchForm.base_fields) - {"sort"} <= named


def test_one_offer_alone(many, script):
    offer = Offer.objects.get(key="3")
    row = script.get(f"{OFFERS}{offer.pk}/").json()
    assert (row["id"], row["gpu_count"], row["missing"]) == (offer.pk, 3, [])


def test_a_list_is_previewed_and_imported_over_itself(acme, script):
    assert send(script, f"{SOURCES}preview/", LIST).json() == {"layout": "gpuhunt", "offers": 1, "without_gpu": 0}
    assert not OfferSource.objects.exists()
    first, second = send(script, SOURCES, LIST), send(script, SOURCES, LIST)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert AuditEntry.objects.filter(action="offer_list.import", via="api").count() == 2
    offer = Offer.objects.get()
    assert (offer.source.team, offer.currency, str(offer.priced_on)) == (acme, "USD", "2026-11-01")


@pytest.mark.parametrize(
    ("changed", "field", "text"),
    [
        ({"csv": COLUMNS + "x,eu,1,4,16,1,L4,24,maybe\n"}, "csv", "Line 2, spot: “maybe” is neither true nor false."),
        ({"csv": COLUMNS + "x,eu,a,4,16,1,L4,24,False\n" * 3}, "csv", "2 more to correct."),
        ({"csv": "a,b\n1,2\n"}, "csv", "Line 1: The first line must name the columns"),
        ({"priced_on": "2999-01-01"}, "priced_on", "still to come"),
        ({"currency": "$$$"}, "currency", "three letters"),
        ({"nam": "x"}, "nam", "Did you mean `name`?"),
    ],
)
def test_a_list_that_cannot_be_kept_is_refused_whole(acme, script, changed, field, text):
    answer = send(script, SOURCES, {**LIST, **changed})
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert text in answer.json()["detail"]
    assert not Offer.objects.exists()


def test_only_imported_lists_are_removed(acme, script, many):
    table = OfferSource.objects.create(team=acme, kind=SourceKind.TABLE, name="Rackrent")
    assert script.delete(f"{SOURCES}{table.pk}/").status_code == 400
    assert script.delete(f"{SOURCES}{many.pk}/").status_code == 204
    assert not Offer.objects.exists()


def test_support_is_rated_anew_and_dropped(acme, script):
    for stars in (2, 5):
        answer = send(script, SCORES, {"provider": " Lambda ", "stars": stars, "note": "quick"})
        assert answer.status_code == 201
    row = ProviderScore.objects.get()
    assert (answer.json()["id"], row.provider, row.value) == (row.pk, "lambda", 5)
    assert script.delete(f"{SCORES}{row.pk}/").status_code == 204


def test_others_lists_are_not_there(rival, as_token, many):
    other = as_token(rival, Scope.OPERATE)
    assert other.get(OFFERS).json()["results"] == []
    assert other.delete(f"{SOURCES}{many.pk}/").status_code == 404
