"""What is Tencent's own: modes of a stop, the recycle bin, prices by zone, shares of a card, debts and repairs."""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import InstanceState, Market, Money, NoticeKind, OfferQuery, Ssh, Tenancy
from fleet.providers.errors import Invalid, InvalidOption, RateLimited, ScopeMissing, WrongState
from fleet.providers.tencent import Tencent
from tests.fleet.providers.fakes.tencent import TYPE, ZONE, TencentFake

KIND = "tencent"


def only(adapter):
    (machine,) = adapter.instances()
    return machine


def test_a_machine_in_full(adapter, fake):
    fake.seed()
    machine = only(adapter)
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (20, 81920, 250)
    assert machine.ssh == (Ssh("203.0.113.7", 22, "ubuntu"),)
    assert machine.labels == {"team": "ml"}


def test_a_stop_asks_not_to_be_charged(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    assert fake.asked("stop")[0].json["StoppedMode"] == "STOP_CHARGING"


def test_a_machine_stopped_at_full_price_is_not_called_stopped(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="STOPPED/KEEP_CHARGING")
    with pytest.raises(WrongState, match="charged in full"):
        adapter.stop(ref)


def test_a_machine_in_the_recycle_bin_is_not_gone(adapter, fake):
    (ref,) = fake.seed()
    adapter.terminate(ref)
    machine = adapter.instance(ref)
    assert (machine.state, machine.state_reason) == (InstanceState.TERMINATING, "MANMADE")
    adapter.terminate(ref)
    assert adapter.instance(ref) is None


@pytest.mark.parametrize(
    ("row", "market", "tenancy", "rate"),
    [
        ({"InstanceChargeType": "SPOTPAID"}, Market.SPOT, Tenancy.DEDICATED_GPU, Decimal("1.74")),
        ({"InstanceChargeType": "PREPAID"}, Market.PREPAID, Tenancy.DEDICATED_GPU, None),
        ({"InstanceChargeType": "CDHPAID"}, Market.PREPAID, Tenancy.DEDICATED_HOST, None),
        ({"InstanceChargeType": "A-WORD-OF-2028"}, Market.UNKNOWN, Tenancy.DEDICATED_GPU, None),
        ({"GPUInfo": {"GPUCount": 0.5, "GPUType": "NVIDIA T4"}}, Market.ON_DEMAND, Tenancy.FRACTION, Decimal("8.68")),
        ({"Placement": {"Zone": "ap-guangzhou-3"}}, Market.ON_DEMAND, Tenancy.DEDICATED_GPU, None),
    ],
)
def test_markets_tenancies_and_prices_of_the_zone(adapter, fake, row, market, tenancy, rate):
    fake.add(fake.row(1) | row)
    machine = only(adapter)
    assert (machine.market, machine.tenancy, machine.gpu_count) == (market, tenancy, 1)
    assert machine.rate == (rate and Money(rate, "CNY"))


def test_a_key_that_may_not_read_prices_still_sees_machines(adapter, fake):
    fake.seed()
    fake.refuse(403, on="offers")
    assert only(adapter).rate is None
    with pytest.raises(ScopeMissing):
        list(adapter.offers(OfferQuery()))


def test_the_apis_own_refusals_come_with_status_200(adapter, fake, monkeypatch):
    monkeypatch.setattr(
        fake, "problem", lambda status, message: fake.says("RequestLimitExceeded.UinLimitExceeded", message)
    )
    fake.refuse(429, message="Slower.")
    with pytest.raises(RateLimited, match="Slower"):
        list(adapter.instances())


@pytest.mark.parametrize(("source", "count"), [("ARREAR", 1), ("EXPIRE", 1), ("MANMADE", 0), ("NOTISOLATED", 0)])
def test_a_debt_is_a_notice(adapter, fake, source, count):
    fake.add(fake.row(1) | {"IsolatedSource": source})
    assert [notice.kind for notice in adapter.notices()] == [NoticeKind.UNPAID] * count


def test_a_repair_is_a_notice(adapter, fake):
    fake.tasks = [
        {"TaskId": "rep-1", "InstanceId": "ins-001", "TaskTypeName": "实例维护升级", "TaskDetail": "The host is old."}
    ]
    (notice,) = adapter.notices()
    assert (notice.kind, notice.key, notice.detail) == (
        NoticeKind.MAINTENANCE,
        "rep-1",
        "实例维护升级 The host is old.",
    )


def test_an_order_carries_price_limit_key_and_zone(adapter, fake):
    spec = replace(
        fake.order(), market=Market.SPOT, max_price_per_hour=Decimal("2.5"), ssh_public_key="ssh-ed25519 AAAA"
    )
    for token in ("rr-1", "rr-2"):
        adapter.create(spec, token)
    asked = fake.asked("create")[0].json
    assert (asked["Placement"], asked["InstanceChargeType"], asked["ClientToken"]) == (
        {"Zone": ZONE},
        "SPOTPAID",
        "rr-1",
    )
    assert asked["InstanceMarketOptions"]["SpotOptions"] == {"SpotInstanceType": "one-time", "MaxPrice": "2.5"}
    assert len(fake.asked("key")) == 1


@pytest.mark.parametrize(
    "change", [{"offer_id": TYPE}, {"image_id": ""}, {"region": "mars-1"}, {"market": Market.PREPAID}]
)
def test_an_order_that_cannot_be_met_is_refused_before_it_is_sent(adapter, fake, change):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **change), "rr-1")
    assert fake.asked("create") == []


def test_types_without_gpus_are_no_offers(adapter):
    offers = list(adapter.offers(OfferQuery()))
    assert [(offer.external_id, offer.market) for offer in offers] == [
        (f"{ZONE}/{TYPE}", Market.ON_DEMAND),
        (f"{ZONE}/{TYPE}", Market.SPOT),
    ]
    assert (offers[0].node_network_gbps, offers[0].extra["stock"]) == (10.0, "NormalStock")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("secret_id", " ", "Fill this in"),
        ("secret_key", "", "Fill this in"),
        ("regions", "", "at least one region"),
        ("currency", "yuan", "three letters"),
    ],
)
def test_an_option_that_cannot_be_used_names_its_field(field, value, says):
    with pytest.raises(InvalidOption, match=says) as refused:
        Tencent({**TencentFake.options, field: value})
    assert refused.value.field == field


def test_without_the_sdk_the_command_that_installs_it_is_told(monkeypatch, adapter):
    monkeypatch.setitem(sys.modules, "tencentcloud.common.profile.http_profile", None)
    with pytest.raises(Invalid, match=r'pip install "tencentcloud-sdk-python-cvm>=3.0.1400,<4"'):
        adapter.verify()
