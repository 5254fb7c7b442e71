"""Crusoe's own ways, beyond the contract: signatures, operations that fail after they were accepted, reservations, capacities."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, ImageState, Market, Money, OfferQuery, Ssh, Tenancy
from fleet.providers.crusoe import Crusoe
from fleet.providers.crusoe_auth import decoded, signed
from fleet.providers.crusoe_facts import disk_gb
from fleet.providers.errors import AuthFailed, Invalid, InvalidOption, PartialCreate
from tests.fleet.providers.fakes.crusoe import EIGHT
from tests.fleet.providers.fakes.server import told

KIND, TOKEN = "crusoe", "rr-0123456789abcdef"
SIGNATURE = "7mziwXLJnBRZEOZefIkw0BpFk8Rwl-tOJxcqM-C53e8"


def test_a_machine_in_our_words(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_raw, machine.gpu_model, machine.gpu_count) == ("H100-80GB", "H100 SXM", 8)
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (176, 960 * 1024, 1152)
    assert machine.ssh == (Ssh("203.0.113.30", user="ubuntu"),)


def test_the_signature_covers_path_sorted_query_method_and_time():
    """The figure was made with openssl: printf '/v1/x\\na=1&b=2\\nGET\\n2026-11-30T10:00:00+00:00\\n' | openssl dgst -sha256 -hmac key."""
    url = httpx.URL("https://api.crusoecloud.com/v1/x?b=2&a=1")
    assert signed(b"key", "GET", url, "2026-11-30T10:00:00+00:00") == SIGNATURE


def test_a_secret_that_is_no_base64_is_refused_before_any_call(fake):
    with pytest.raises(InvalidOption) as refused:
        Crusoe({**fake.options, "secret_key": "not base64!"})
    assert refused.value.field == "secret_key"
    assert decoded("a-_b") == b"k\xef\xdb"


def test_a_key_of_another_is_a_wrong_key(fake):
    with pytest.raises(AuthFailed):
        Crusoe({**fake.options, "access_key": "AK-2"}).verify()


def test_an_order_that_fails_later_and_leaves_a_machine_names_it(adapter, fake):
    fake.make_partially()
    with pytest.raises(PartialCreate, match="could not be attached") as partial:
        adapter.create(fake.order(), TOKEN)
    assert partial.value.ref.external_id in fake.machines


def test_an_order_whose_operation_cannot_be_read_names_its_machine(adapter, fake):
    """It was accepted: only what became of it is unknown."""
    fake.refuse(500, on="operation")
    with pytest.raises(PartialCreate) as partial:
        adapter.create(fake.order(), TOKEN)
    assert list(fake.machines) == [partial.value.ref.external_id]


def test_an_order_that_takes_long_is_left_to_later_readings(adapter, fake, monkeypatch):
    monkeypatch.setattr(fake, "find_operation", lambda request, operation_id: told(fake.operations[operation_id]))
    ref = adapter.create(fake.order(), TOKEN)
    assert ref.external_id in fake.machines
    assert len(fake.asked("operation")) == 5


def test_the_token_stands_in_the_name(adapter, fake):
    ref = adapter.create(fake.order(), TOKEN)
    machine = adapter.instance(ref)
    assert (machine.name, machine.extra["client_token"]) == (f"train-{TOKEN}", TOKEN)


def test_what_is_reserved_may_go_on_costing_while_it_is_stopped(adapter, fake):
    (ref,) = fake.seed()
    fake.machines[ref.external_id]["reservation_id"] = "r-1"
    fake.show(ref, raw_state="STATE_SHUTOFF")
    machine = adapter.instance(ref)
    assert (machine.market, machine.billing) == (Market.RESERVED, Billing.UNKNOWN)


def test_what_nobody_typed_a_price_for_is_unpriced(fake):
    fake.seed()
    (machine,) = Crusoe({**fake.options, "prices": ""}).instances()
    assert machine.rate is None


def test_spot_has_a_price_of_its_own(fake):
    (ref,) = fake.seed()
    fake.machines[ref.external_id]["billing_type"] = "Spot"
    (machine,) = Crusoe({**fake.options, "prices": f"{EIGHT} 31.20\nspot {EIGHT} 12.80"}).instances()
    assert (machine.market, machine.rate) == (Market.SPOT, Money(Decimal("12.80"), "USD"))


def test_a_line_that_is_no_price_is_refused_with_its_number(fake):
    with pytest.raises(InvalidOption) as refused:
        Crusoe({**fake.options, "prices": f"{EIGHT} 31.20\nh100 cheap"})
    assert (refused.value.field, refused.value.params) == ("prices", {"line": "2"})


def test_a_type_that_the_list_lacks_is_read_from_its_name(adapter, fake):
    fake.add(fake.machine(fake.number(), "old", "l40s-48gb.4x"))
    (machine,) = adapter.instances()
    assert (machine.gpu_model, machine.gpu_count, machine.gpu_memory_mib) == ("L40S", 4, 48 * 1024)


def test_offers_are_places_with_the_best_of_their_quotas(adapter):
    offers = {offer.region: offer for offer in adapter.offers(OfferQuery())}
    assert {region: offer.available for region, offer in offers.items()} == {"us-east1-a": True, "eu-iceland1-a": False}
    assert all(
        offer.external_id == EIGHT and offer.price == Money(Decimal("31.20"), "USD") for offer in offers.values()
    )


def test_an_image_is_made_of_the_system_disk(adapter, fake):
    (ref,) = fake.seed()
    saved = adapter.save_image(ref, "vision-2")
    assert [request.json["DiskID"] for request in fake.asked("save_image")] == ["disk-1-os"]
    assert (saved.external_id, saved.state) == ("", ImageState.PENDING)


@pytest.mark.parametrize(
    ("image", "field"),
    [("09ae8411-0fbb-411c-898c-000000000001", "custom_image"), ("ubuntu22.04-nvidia-sxm-docker:latest", "image")],
)
def test_an_image_goes_where_its_kind_belongs(adapter, fake, image, field):
    adapter.create(replace(fake.order(), image_id=image), TOKEN)
    assert [request.json[field] for request in fake.asked("create")] == [image]


@pytest.mark.parametrize(
    "wish",
    [
        {"disk_gb": 500},
        {"max_price_per_hour": Decimal(1)},
        {"market": Market.SPOT},
        {"image_id": ""},
        {"ssh_public_key": ""},
    ],
)
def test_a_wish_that_cannot_be_met_is_refused_and_not_dropped(adapter, fake, wish):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **wish), TOKEN)
    assert fake.machines == {}


@pytest.mark.parametrize(
    ("sizes", "gb"), [(["10GiB", "1TiB"], 1034), (["10 GiB"], 10), (["10GiB", "many"], None), ([], None)]
)
def test_disks_are_summed_or_unknown(sizes, gb):
    assert disk_gb([{"size": size} for size in sizes]) == gb
