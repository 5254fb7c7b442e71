"""What is Google's own: lists with gaps, signed assertions, words that mislead, GPUs that only the type's name tells."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fleet.providers.base import InstanceState, Market, Money, NoticeKind, OfferQuery, Tenancy
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NoCapacity,
    PartialCreate,
    ProviderError,
    Unavailable,
)
from fleet.providers.google import Google
from fleet.providers.google_facts import accelerators_of, gpus_of
from tests.fleet.providers.fakes.description import SPECS
from tests.fleet.providers.fakes.google import KEY, TYPE, ZONE, GoogleFake

KIND = "google"


def only(adapter):
    (machine,) = adapter.instances()
    return machine


@pytest.mark.skipif(not SPECS.exists(), reason="the saved descriptions (../shared/specs) are not here")
def test_the_fake_is_held_to_googles_own_description(adapter, fake):
    fake.seed()
    fake.machines["4000000000000000001"]["colour"] = "blue"
    with pytest.raises(ProviderError):
        list(adapter.instances())
    assert "colour" in fake.drifts.pop()


@pytest.mark.parametrize(
    "gap",
    [
        {"zones/us-east1-b": {"warning": {"code": "UNREACHABLE", "message": "us-east1-b is away"}}},
        {"zones/us-east1-b": {"warning": {"code": "PARTIAL_SUCCESS"}}},
    ],
)
def test_a_list_from_which_a_zone_is_missing_is_no_list(adapter, fake, gap):
    fake.seed()
    fake.warnings = gap
    with pytest.raises(Unavailable, match="not complete"):
        list(adapter.instances())


def test_one_key_is_exchanged_once_for_many_calls(adapter, fake):
    fake.seed(5)
    list(adapter.instances())
    assert fake.tokens_asked == 1


def test_a_key_that_google_does_not_know_is_refused(fake):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(AuthFailed, match="refuses"):
        Google({**fake.options, "service_account": json.dumps({**KEY, "private_key": pem})}).verify()


def test_where_tokens_come_from_is_not_taken_from_the_file(adapter, fake):
    """KEY names an address of the cloud's own network, as an attacker would."""
    adapter.verify()
    assert fake.tokens_asked == 1


def test_a_machine_in_full(adapter, fake):
    fake.seed()
    machine = only(adapter)
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (24, 174080, 100)
    assert (machine.ref.region, machine.labels, machine.tenancy) == (ZONE, {"team": "ml"}, Tenancy.DEDICATED_GPU)
    assert machine.created_at == datetime(2026, 11, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("scheduling", "market", "rate"),
    [
        ({"provisioningModel": "SPOT"}, Market.SPOT, Decimal("3.67")),
        ({"preemptible": True}, Market.SPOT, Decimal("3.67")),
        ({"provisioningModel": "RESERVATION_BOUND"}, Market.RESERVED, None),
        ({"provisioningModel": "FLEX_START"}, Market.ON_DEMAND, Decimal("7.35")),
        ({}, Market.ON_DEMAND, Decimal("7.35")),
    ],
)
def test_markets_and_typed_prices(adapter, fake, scheduling, market, rate):
    fake.add(fake.row(1) | {"scheduling": scheduling})
    machine = only(adapter)
    assert (machine.market, machine.rate) == (market, rate and Money(rate, "USD"))


def test_cards_that_were_added_to_a_plain_type_leave_its_price_unknown(fake):
    row = fake.row(1)
    fake.add(row | {"machineType": row["machineType"].replace(TYPE, "n1-standard-8")})
    adapter = Google({**fake.options, "prices": "n1-standard-8 0.38"})
    assert (only(adapter).gpu_count, only(adapter).rate) == (2, None)


def test_a_sole_tenant_is_alone_on_its_host(adapter, fake):
    fake.add(fake.row(1) | {"scheduling": {"nodeAffinities": [{"key": "node", "values": ["a"]}]}})
    assert only(adapter).tenancy is Tenancy.DEDICATED_HOST


@pytest.mark.parametrize(
    ("kind", "model", "count"),
    [
        ("a2-highgpu-8g", "A100 SXM 40 GB", 8),
        ("a2-megagpu-16g", "A100 SXM 40 GB", 16),
        ("a2-ultragpu-4g", "A100 SXM 80 GB", 4),
        ("a3-highgpu-8g", "H100 SXM", 8),
        ("a3-megagpu-8g", "H100 SXM", 8),
        ("a3-ultragpu-8g", "H200", 8),
        ("a4-highgpu-8g", "B200", 8),
        ("a4x-highgpu-4g", "GB200", 4),
        ("g2-standard-24", "L4", 2),
    ],
)
def test_gpus_that_only_the_types_name_tells(kind, model, count):
    gpus = gpus_of(accelerators_of({}, {}, kind))
    assert (gpus["gpu_model"], gpus["gpu_count"]) == (model, count)


def test_a_type_without_gpus_has_none():
    assert gpus_of(accelerators_of({}, {}, "n2-standard-8")) == {"gpu_count": 0}


def test_terminated_is_googles_word_for_stopped(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    machine = adapter.instance(ref)
    assert (machine.raw_state, machine.state) == ("TERMINATED", InstanceState.STOPPED)
    assert fake.asked("stop")[0].query == {"discardLocalSsd": "true"}


def test_a_suspended_machine_is_resumed(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="SUSPENDED")
    adapter.start(ref)
    assert len(fake.asked("resume")) == 1
    assert only(adapter).state is InstanceState.RUNNING


def test_maintenance_is_a_notice(adapter, fake):
    told = {"type": "SCHEDULED", "windowStartTime": "2026-12-02T09:00:00Z", "maintenanceReasons": ["FAILURE_GPU_XID"]}
    fake.add(fake.row(1) | {"resourceStatus": {"upcomingMaintenance": told}})
    (notice,) = adapter.notices()
    assert (notice.kind, notice.detail) == (NoticeKind.MAINTENANCE, "SCHEDULED, FAILURE_GPU_XID")
    assert notice.starts_at == datetime(2026, 12, 2, 9, tzinfo=UTC)


def test_an_order_is_named_and_labelled_as_google_likes_it(adapter, fake):
    spec = replace(fake.order(), market=Market.SPOT, labels={"Team": "ML Ops"}, ssh_public_key="ssh-ed25519 AAAA")
    adapter.create(spec, "rr-0123456789abcdef")
    (asked,) = fake.asked("create")
    assert asked.json["name"] == "m-train-1-rr-0123456789abcdef"
    assert asked.json["labels"] == {"team": "ml-ops", "rackrent-launch": "rr-0123456789abcdef"}
    assert asked.json["scheduling"]["instanceTerminationAction"] == "STOP"
    assert asked.json["disks"][0]["initializeParams"]["sourceImage"] == "projects/vision-lab/global/images/vision-1"
    assert len(asked.query["requestId"]) == 36


def test_an_order_that_fails_after_it_was_accepted_fails(adapter, fake):
    fake.sell_out()
    with pytest.raises(NoCapacity, match="ZONE_RESOURCE_POOL_EXHAUSTED"):
        adapter.create(fake.order(), "rr-1")


def test_an_order_whose_progress_cannot_be_read_stands(adapter, fake):
    fake.refuse(500, on="operation")
    with pytest.raises(PartialCreate) as begun:
        adapter.create(fake.order(), "rr-1")
    assert begun.value.ref.external_id in fake.machines


@pytest.mark.parametrize(
    "change", [{"offer_id": TYPE}, {"image_id": ""}, {"max_price_per_hour": Decimal(1)}, {"market": Market.PREPAID}]
)
def test_an_order_that_cannot_be_met_is_refused_before_it_is_sent(adapter, fake, change):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **change), "rr-1")
    assert fake.asked("create") == []


def test_offers_are_narrowed_by_region_and_market(adapter):
    offers = list(adapter.offers(OfferQuery(market=Market.SPOT, region="us-central1")))
    assert [(offer.external_id, offer.price) for offer in offers] == [
        (f"{ZONE}/{TYPE}", Money(Decimal("3.67"), "USD")),
        (f"{ZONE}/a2-highgpu-8g", None),
        (f"{ZONE}/g2-standard-24", None),
    ]
    assert list(adapter.offers(OfferQuery(region="europe-west4"))) == []


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("service_account", "", "whole JSON"),
        ("service_account", "{}", "whole JSON"),
        ("service_account", '{"type": "authorized_user"}', "whole JSON"),
        ("prices", "a2-highgpu-1g cheap", "Line 1"),
        ("currency", "dollars", "three letters"),
    ],
)
def test_an_option_that_cannot_be_used_names_its_field(field, value, says):
    with pytest.raises(InvalidOption, match=says) as refused:
        Google({**GoogleFake.options, field: value})
    assert refused.value.field == field


def test_a_private_key_that_cannot_be_read_is_said_so(fake):
    with pytest.raises(InvalidOption, match="private key"):
        Google({**fake.options, "service_account": json.dumps({**KEY, "private_key": "nonsense"})}).verify()


def test_without_the_library_the_command_that_installs_it_is_told(monkeypatch, adapter):
    monkeypatch.setitem(sys.modules, "google.auth.exceptions", None)
    with pytest.raises(Invalid, match=r'pip install "google-auth>=2.40,<3"'):
        adapter.verify()
