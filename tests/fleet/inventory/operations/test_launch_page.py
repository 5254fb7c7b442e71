"""Renting from a page: an offer or a typed name, what it costs, a script that enrols the agent, and an order that is written once."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import Offer, OfferSource
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.orders import order_of
from fleet.teams.models import AuditEntry
from fleet.telemetry.models import EnrolmentToken

LAUNCH = "/t/acme/launch/"
FORM = {"key": "0123456789abcdef", "name": "train-02"}


def text(answer) -> str:
    return str(answer.content.decode())


@pytest.fixture
def offer(acme, rented) -> Offer:
    source = OfferSource.objects.create(team=acme, kind="live", name="Lab", account=rented)
    return Offer.objects.create(
        source=source,
        key="h100x8",
        provider="liar",
        external_id="h100x8",
        instance_type="gpu_8x_h100",
        region="eu-1",
        market="on_demand",
        price_per_hour=Decimal("24.40"),
        currency="USD",
        gpu_model="H100",
        gpu_count=8,
        vcpus=4,
        seen_at=timezone.now(),
    )


@pytest.fixture
def send(as_user, bob):
    return lambda address, **values: as_user(bob).post(address, {**FORM, **values})


def test_an_offer_is_shown_with_its_price_and_what_people_overlook(offer, as_user, bob):
    page = text(as_user(bob).get(f"{LAUNCH}?offer={offer.pk}"))
    assert "Launch for $24.40/h" in page
    assert "$585.60 a day" in page
    assert "4 vCPUs" in page
    assert "id_offer_id" not in page


def test_an_offer_is_ordered_and_followed(offer, send, project):
    answer = send(f"{LAUNCH}?offer={offer.pk}", project=project.pk, disk_gb="200")
    launch = Operation.objects.get()
    assert answer.headers["Location"] == f"/t/acme/operations/{launch.pk}/?follow=1"
    ordered = launch.spec["create"]
    assert (ordered["offer_id"], ordered["region"], ordered["gpu_count"]) == ("h100x8", "eu-1", 8)
    assert (ordered["disk_gb"], order_of(launch).user_data) == (200, "")
    assert (launch.project, launch.price_per_hour) == (project, Decimal("24.40"))


def test_a_double_click_rents_one(offer, send):
    answers = [send(f"{LAUNCH}?offer={offer.pk}", install_agent="on") for _time in range(2)]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert Operation.objects.count() == EnrolmentToken.objects.count() == 1


def test_what_the_provider_names_can_be_typed(send, rented):
    send(LAUNCH, account=rented.pk, offer_id="h100x8", region="eu-1", market="spot", max_price_per_hour="20")
    ordered = Operation.objects.get().spec["create"]
    assert (ordered["offer_id"], ordered["market"], ordered["max_price_per_hour"]) == ("h100x8", "spot", "20")


def test_the_agent_is_installed_by_a_token_for_one_machine(offer, send, settings):
    settings.PUBLIC_URL = "https://rackrent.example.org"
    send(f"{LAUNCH}?offer={offer.pk}", install_agent="on", user_data="echo mine")
    script, token = order_of(Operation.objects.get()).user_data, EnrolmentToken.objects.get()
    assert f"https://rackrent.example.org/agent/install.sh | sh -s -- --token {token.prefix}" in script
    assert script.endswith("echo mine\n")
    assert token.max_uses == 1


def test_the_token_is_on_no_page_and_in_no_record(offer, send, as_user, bob):
    send(f"{LAUNCH}?offer={offer.pk}", install_agent="on")
    launch = Operation.objects.get()
    secret = order_of(launch).user_data.partition("--token ")[2].partition(")")[0]
    assert secret.startswith("rre_")
    assert secret not in text(as_user(bob).get(f"/t/acme/operations/{launch.pk}/"))
    assert not any(secret in str(entry.new) for entry in AuditEntry.objects.all())


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("name", "Not A Name", "Use lower-case letters"),
        ("name", "", "id_name_error"),
        ("disk_gb", "0", "id_disk_gb_error"),
        ("user_data", "#cloud-config", "This is no shell script"),
    ],
)
def test_bad_input_names_its_field_and_orders_nothing(offer, send, field, value, says):
    answer = send(f"{LAUNCH}?offer={offer.pk}", install_agent="on", **{field: value})
    assert answer.status_code == 422
    assert says in text(answer)
    assert not Operation.objects.exists()
    assert not EnrolmentToken.objects.exists()


def test_an_account_that_is_refused_meanwhile_leaves_no_token(offer, send, monkeypatch):
    monkeypatch.setattr("fleet.pages.launch.is_launchable", lambda _offer: True)
    ProviderAccount.objects.update(monitor_only=True)
    answer = send(f"{LAUNCH}?offer={offer.pk}", install_agent="on")
    assert "is for looking only" in text(answer)
    assert not EnrolmentToken.objects.exists()


def test_who_may(offer, as_user, vera, charlie, bob):
    address = f"{LAUNCH}?offer={offer.pk}"
    assert as_user(vera).get(address).status_code == as_user(vera).post(address, FORM).status_code == 403
    assert as_user(charlie).get(address).status_code == 404
    assert as_user(bob).get(f"{LAUNCH}?offer=999999").status_code == 404
    ProviderAccount.objects.update(monitor_only=True)
    assert as_user(bob).get(address).status_code == 404
    assert "No account may rent" in text(as_user(bob).get(LAUNCH))
