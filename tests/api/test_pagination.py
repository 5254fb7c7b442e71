from __future__ import annotations

import pytest

from fleet.inventory.models import Instance, Observation
from tests.api.conftest import NOW


def every_page(client, address, **parameters) -> list[list[dict[str, object]]]:
    """All pages from the first on, followed by their `next`."""
    pages, link = [], address
    while link:
        answer = client.get(link, parameters if link == address else None)
        assert answer.status_code == 200, answer.text
        pages.append(answer.json()["results"])
        link = answer.json()["next"]
    return pages


@pytest.fixture
def machines(make_instance):
    prices = [None, "2", "1", None, "2", "3", "1"]
    return [make_instance(name=f"m{number}", price_per_hour=price) for number, price in enumerate(prices)]


@pytest.mark.parametrize("ordering", ["id", "-id", "name", "-name", "price_per_hour", "-price_per_hour"])
def test_pages_together_are_the_list_in_order(machines, acme, as_token, ordering):
    pages = every_page(as_token(acme), "/api/v1/instances/", limit=2, ordering=ordering)
    assert [len(page) for page in pages] == [2, 2, 2, 1]
    seen = [row["id"] for page in pages for row in page]
    expected = list(Instance.objects.order_by("id").values_list("id", "name", "price_per_hour"))
    expected.sort(key=_key(ordering.removeprefix("-")), reverse=ordering.startswith("-"))
    known = [row for row in expected if "price" not in ordering or row[2] is not None]
    unknown = [row for row in expected if row not in known]
    assert seen == [row[0] for row in known + unknown]


def _key(name):
    return {"id": lambda row: row[0], "name": lambda row: row[1], "price_per_hour": lambda row: (row[2] or 0, row[0])}[
        name
    ]


def test_a_listing_that_wrote_a_thousand_rows_at_one_moment_is_paged_through(acme, make_instance, as_token):
    instance = make_instance()
    Observation.objects.bulk_create(
        Observation(instance=instance, seen_at=NOW, state="running", billing="full", currency="USD", rule_version=1)
        for _ in range(1201)
    )
    pages = every_page(as_token(acme), "/api/v1/observations/", limit=500)
    assert [len(page) for page in pages] == [500, 500, 201]
    assert len({row["id"] for page in pages for row in page}) == 1201


def test_rows_that_come_meanwhile_shift_nothing(machines, acme, as_token, make_instance):
    client = as_token(acme)
    first = client.get("/api/v1/instances/", {"limit": 3, "ordering": "-id"}).json()
    make_instance(name="late")
    Instance.objects.filter(pk=first["results"][0]["id"]).delete()
    rest = client.get(first["next"]).json()
    assert [row["name"] for row in rest["results"]] == ["m3", "m2", "m1"]


def test_a_page_has_100_rows_unless_told(acme, account, as_token):
    Instance.objects.bulk_create(
        Instance(team=acme, account=account, external_id=f"{number}", name=f"{number}") for number in range(101)
    )
    answer = as_token(acme).get("/api/v1/instances/").json()
    assert len(answer["results"]) == 100
    assert "limit" not in answer["next"]


def test_filters_stay_in_the_link(machines, acme, as_token):
    link = as_token(acme).get("/api/v1/instances/", {"limit": 1, "search": "m"}).json()["next"]
    assert "search=m" in link


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "1.5", "٣", "9" * 40])
def test_a_limit_out_of_range_is_named(acme, as_token, limit):
    answer = as_token(acme).get("/api/v1/instances/", {"limit": limit})
    assert (answer.status_code, answer.json()["field"]) == (400, "limit")
    assert "500" in answer.json()["detail"]


def test_an_unknown_ordering_is_named(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/", {"ordering": "team__name"})
    assert (answer.status_code, answer.json()["field"]) == (400, "ordering")
    assert "price_per_hour" in answer.json()["detail"]


def test_a_cursor_of_another_list_or_order_is_refused(machines, acme, as_token):
    client = as_token(acme)
    cursor = client.get("/api/v1/instances/", {"limit": 1}).json()["next"].split("cursor=")[1].split("&")[0]
    for address, more in (
        ("/api/v1/images/", {}),
        ("/api/v1/instances/", {"ordering": "name"}),
    ):
        answer = client.get(address, {"cursor": cursor.replace("%3A", ":"), **more})
        assert (answer.status_code, answer.json()["field"]) == (400, "cursor")


def test_a_token_costs_two_queries_once_its_use_is_noted(fleet, acme, as_token, django_assert_num_queries):
    client = as_token(acme)
    client.get("/api/v1/instances/")
    with django_assert_num_queries(2):
        client.get("/api/v1/instances/")
