"""The Images page: which image is used by which machine, of which account."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.poll import poll_account
from fleet.providers.base import ProviderImage
from tests.fleet.inventory.conftest import NOON

PAGE = "/t/acme/images/"


@pytest.fixture
def polled(lab, provider, listed):
    provider.own_images = [ProviderImage("img-1", "vision <2.4>", NOON, "eu-1"), ProviderImage("img-2", "unused")]
    provider.machines = [listed("i-1", image_id="img-1"), listed("i-2", image_id="public-9", image_name="Ubuntu")]
    poll_account(account=lab, now=NOON)
    return lab


def test_images_and_the_machines_that_use_them(polled, vera, as_user):
    page = as_user(vera).get(PAGE).text
    assert "vision &lt;2.4&gt;" in page
    assert "name of i-1" in page
    assert "not yours" in page


def test_a_deleted_image_stays_while_a_machine_runs_from_it(polled, provider, vera, as_user):
    provider.own_images = []
    polled.refresh_from_db()
    poll_account(account=polled, now=NOON + timedelta(minutes=1))
    page = as_user(vera).get(PAGE).text
    assert "img-1" in page
    assert "img-2" not in page


def test_they_can_be_narrowed_to_an_account(polled, vera, as_user):
    assert "img-1" in as_user(vera).get(f"{PAGE}?account={polled.pk}").text
    assert as_user(vera).get(f"{PAGE}?account=nonsense&page=-4").status_code == 200


def test_an_empty_page_says_when_images_come(acme, vera, as_user):
    assert "No image yet" in as_user(vera).get(PAGE).text


def test_another_team_sees_none(polled, charlie, as_user):
    assert as_user(charlie).get(PAGE).status_code == 404
    assert "img-1" not in as_user(charlie).get("/t/rival/images/").text


def test_the_number_of_queries_does_not_grow(polled, provider, listed, vera, as_user, django_assert_max_num_queries):
    provider.own_images = [ProviderImage(f"img-{number}", f"image {number}") for number in range(60)]
    provider.machines = [listed(f"i-{number}", image_id=f"img-{number}") for number in range(60)]
    polled.refresh_from_db()
    poll_account(account=polled, now=NOON)
    client = as_user(vera)
    client.get(PAGE)
    with django_assert_max_num_queries(20):
        client.get(PAGE)
