"""What is Alibaba's own: empty lists that are no lists, modes of a stop, spot, locks, events, and an SDK that need not be there."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.providers.alibaba import Alibaba
from fleet.providers.base import Market, Money, NoticeKind, OfferQuery, Tenancy
from fleet.providers.errors import Invalid, InvalidOption, ScopeMissing, WrongState
from tests.fleet.providers.fakes.alibaba import TYPE, AlibabaFake

KIND = "alibaba"


def only(adapter):
    (machine,) = adapter.instances()
    return machine


def test_an_empty_list_of_a_key_without_rights_is_no_empty_account(adapter, fake):
    (ref,) = fake.seed()
    fake.may_list = False
    with pytest.raises(ScopeMissing, match="not authorized"):
        list(adapter.instances())
    with pytest.raises(ScopeMissing):
        adapter.instance(ref)
    with pytest.raises(ScopeMissing):
        adapter.verify()


def test_a_stop_asks_not_to_be_charged(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    assert fake.asked("stop")[0].query["StoppedMode"] == "StopCharging"


def test_a_machine_stopped_at_full_price_is_not_called_stopped(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="Stopped/KeepCharging")
    with pytest.raises(WrongState, match="charged in full"):
        adapter.stop(ref)


@pytest.mark.parametrize(
    ("row", "market", "rate"),
    [
        ({"SpotStrategy": "SpotWithPriceLimit"}, Market.SPOT, Decimal("4.5")),
        ({"InstanceChargeType": "PrePaid"}, Market.PREPAID, None),
        ({"InstanceChargeType": "a-word-of-2028"}, Market.UNKNOWN, None),
    ],
)
def test_markets_and_their_prices(adapter, fake, row, market, rate):
    fake.add(fake.row(1) | row)
    machine = only(adapter)
    assert (machine.market, machine.rate) == (market, rate and Money(rate, "CNY"))


def test_the_end_of_a_prepaid_term_and_of_an_automatic_release_are_known(adapter, fake):
    fake.add(fake.row(1) | {"AutoReleaseTime": "2026-12-01T10:00Z"})
    assert only(adapter).expires_at == datetime(2026, 12, 1, 10, tzinfo=UTC)
    fake.add(fake.row(1) | {"InstanceChargeType": "PrePaid", "ExpiredTime": "2027-01-01T16:00Z"})
    assert only(adapter).expires_at == datetime(2027, 1, 1, 16, tzinfo=UTC)
    fake.add(fake.row(1))
    assert only(adapter).expires_at is None


@pytest.mark.parametrize(
    ("kind", "tenancy"),
    [
        ("ecs.vgn6i-m4-vws.xlarge", Tenancy.FRACTION),
        ("ecs.ebmgn7e.32xlarge", Tenancy.DEDICATED_HOST),
        (TYPE, Tenancy.DEDICATED_GPU),
    ],
)
def test_tenancies(adapter, fake, kind, tenancy):
    fake.add(fake.row(1) | {"InstanceType": kind})
    assert only(adapter).tenancy is tenancy


@pytest.mark.parametrize(
    ("lock", "kind"),
    [("financial", NoticeKind.UNPAID), ("Recycling", NoticeKind.INTERRUPTION), ("a-word-of-2028", NoticeKind.OTHER)],
)
def test_a_lock_is_a_notice(adapter, fake, lock, kind):
    fake.add(fake.row(1) | {"OperationLocks": {"LockReason": [{"LockReason": lock}]}})
    (notice,) = adapter.notices()
    assert (notice.ref.external_id, notice.kind, notice.key) == ("i-bp001", kind, f"lock:{lock}")
    assert only(adapter).state_reason == lock


def test_maintenance_is_a_notice(adapter, fake):
    fake.seed()
    event = {"EventId": "e-1", "InstanceId": "i-bp001", "EventType": {"Name": "SystemMaintenance.Reboot"}}
    fake.events = [event | {"NotBefore": "2026-12-02T16:00:00Z", "Reason": "The host is old."}] * 3
    notices = list(adapter.notices())
    assert {notice.kind for notice in notices} == {NoticeKind.MAINTENANCE}
    assert (len(notices), notices[0].key) == (3, "e-1")
    assert notices[0].starts_at == datetime(2026, 12, 2, 16, tzinfo=UTC)


def test_an_order_carries_price_limit_key_disk_and_network(adapter, fake):
    spec = replace(
        fake.order(), market=Market.SPOT, max_price_per_hour=Decimal("9.5"), ssh_public_key="ssh-ed25519 AAAA"
    )
    for token in ("rr-1", "rr-2"):
        adapter.create(spec, token)
    asked = fake.asked("create")[0].query
    assert (asked["SpotStrategy"], asked["SpotPriceLimit"], asked["SystemDisk.Size"]) == (
        "SpotWithPriceLimit",
        "9.5",
        "200",
    )
    assert (asked["VSwitchId"], asked["SecurityGroupId"], asked["ClientToken"]) == ("vsw-bp1", "sg-bp1", "rr-1")
    assert list(fake.keys) == [asked["KeyPairName"]]


def test_without_a_network_nothing_is_rented(fake):
    with pytest.raises(Invalid, match="vSwitch and a security group"):
        Alibaba({**fake.options, "network": ""}).create(fake.order(), "rr-1")
    assert fake.machines == {}


def test_only_what_is_in_stock_is_offered_at_spots_own_price(adapter):
    offers = list(adapter.offers(OfferQuery(market=Market.SPOT)))
    assert [(offer.external_id, offer.price) for offer in offers] == [(TYPE, Money(Decimal("4.5"), "CNY"))]
    assert (offers[0].gpu_memory_mib, offers[0].node_network_gbps) == (24576, 16.0)


def test_a_region_of_nobody_is_refused_before_any_call(adapter, fake):
    with pytest.raises(Invalid, match="mars"):
        adapter.stop(replace(fake.seed()[0], region="mars-north-1"))
    assert fake.requests == []


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("access_key_id", " ", "Fill this in"),
        ("access_key_secret", "", "Fill this in"),
        ("regions", " , ", "at least one region"),
        ("regions", "cn-hangzhou/../evil", "is not the name"),
        ("network", "cn-hangzhou vsw-1", "Line 1"),
        ("network", "\ncn-beijing vsw-1 sg-1", "Line 2"),
    ],
)
def test_an_option_that_cannot_be_used_names_its_field(field, value, says):
    with pytest.raises(InvalidOption, match=says) as refused:
        Alibaba({**AlibabaFake.options, field: value})
    assert refused.value.field == field


def test_without_the_sdk_the_command_that_installs_it_is_told(monkeypatch, adapter):
    monkeypatch.setitem(sys.modules, "alibabacloud_tea_openapi.utils_models", None)
    with pytest.raises(Invalid, match=r'pip install "alibabacloud-ecs20140526>=7.2,<8"'):
        adapter.verify()
