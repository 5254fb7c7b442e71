"""AutoDL's own ways, beyond the contract: refusals that come with 200, thousandths of a yuan, GET with a body, off before the end."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Market, Money, Ref, Ssh, Tenancy
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    PartialCreate,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from tests.fleet.providers.fakes.autodl import ONCE
from tests.fleet.providers.fakes.base import PLANTED
from tests.fleet.providers.fakes.server import told

KIND, TOKEN = "autodl", "rr-0123456789abcdef"


def test_a_machine_in_our_words(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_model, machine.gpu_count) == ("RTX 4090", 2)
    assert machine.rate == Money(Decimal("3.94"), "CNY")
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert machine.ssh == (Ssh("connect.example.invalid", 30022, kind="proxy"),)
    assert (machine.ram_mib, machine.disk_gb) == (20_480, 85)
    assert (machine.usage.cpu_percent, machine.usage.memory_percent) == (3.3, 1.2)
    assert (machine.stopped_at, machine.expires_at) == (None, None)


def test_the_root_password_is_left_where_it_is(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert PLANTED not in repr(machine)


def test_reads_of_one_machine_are_gets_with_a_body(adapter, fake):
    (ref,) = fake.seed()
    adapter.instance(ref)
    (request,) = fake.asked("snapshot")
    assert (request.method, request.json) == ("GET", {"instance_uuid": ref.external_id})


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        ("AuthorizeFailed", "登录超时", AuthFailed),
        ("Error", "token无效", AuthFailed),
        ("Error", "请先完成实名", ScopeMissing),
        ("RecordNotFoundError", "实例不存在", NotFound),
        ("Error", "余额不足，请充值", QuotaOrFunds),
        ("Error", "GPU库存不足", NoCapacity),
        ("Error", "操作过于频繁", RateLimited),
        ("Error", "实例运行中，请先关机", WrongState),
        ("ParamError", "参数错误", Invalid),
        ("Surprise", "", Invalid),
    ],
)
def test_a_refusal_comes_with_200_and_another_code(adapter, fake, monkeypatch, code, message, error):
    monkeypatch.setattr(fake, "listing", lambda request: fake.refusal(code, message))
    with pytest.raises(error) as refused:
        list(adapter.instances())
    assert message in refused.value.detail
    assert refused.value.detail


def test_a_refusal_does_not_repeat_the_token(adapter, fake, monkeypatch):
    secret = fake.options["token"]
    monkeypatch.setattr(fake, "listing", lambda request: fake.refusal("Error", f"token {secret} 无效"))
    with pytest.raises(AuthFailed) as refused:
        list(adapter.instances())
    assert secret not in refused.value.detail


@pytest.mark.parametrize("body", [{"data": {"list": []}}, {"code": 0, "data": {"list": []}}])
def test_an_answer_without_its_code_is_no_listing(adapter, fake, monkeypatch, body):
    monkeypatch.setattr(fake, "listing", lambda request: told(body))
    fake.held_to_description = False
    with pytest.raises(Unavailable):
        list(adapter.instances())


def test_a_machine_without_a_snapshot_is_listed_without_price_and_address(adapter, fake, monkeypatch):
    monkeypatch.setattr(fake, "snapshot", lambda request: fake.missing())
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.rate, machine.ssh, machine.usage, machine.gpu_raw) == (None, (), None, "RTX 4090 48 GB")


def test_a_snapshot_that_fails_fails_the_listing(adapter, fake):
    fake.seed(2)
    fake.refuse(500, on="snapshot", after=1)
    with pytest.raises(Unavailable):
        list(adapter.instances())


def test_powered_on_without_its_gpus_it_costs_little(adapter, fake):
    (ref,) = fake.seed()
    fake.machines[ref.external_id]["start_mode"] = "non_gpu"
    machine = adapter.instance(ref)
    assert (machine.billing, machine.rate) == (Billing.FULL, Money(Decimal("0.1"), "CNY"))


def test_a_term_paid_ahead_is_paid_while_it_is_off(adapter, fake):
    (ref,) = fake.seed()
    fake.machines[ref.external_id] |= {"charge_type": "monthly", "expired_at": ONCE}
    fake.show(ref, raw_state="shutdown")
    machine = adapter.instance(ref)
    assert (machine.market, machine.billing) == (Market.PREPAID, Billing.FULL)
    assert machine.expires_at.utcoffset().total_seconds() == 8 * 3600


def test_it_is_powered_off_before_it_is_released(adapter, fake):
    (ref,) = fake.seed()
    adapter.terminate(ref)
    acts = [name for name, _ in fake.requests if name in {"stop", "terminate"}]
    assert acts == ["stop", "terminate"]
    assert fake.machines == {}


def test_what_is_off_is_released_at_once(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="shutdown")
    adapter.terminate(ref)
    assert fake.asked("stop") == []
    assert fake.machines == {}


def test_what_is_slow_to_power_off_is_to_be_asked_again_soon(adapter, fake):
    """Releasing it now would be refused: nothing is lost, nothing is called done."""
    fake.slow_to_stop = True
    (ref,) = fake.seed()
    with pytest.raises(RateLimited) as later:
        adapter.terminate(ref)
    assert later.value.retry_after == 20
    assert fake.asked("terminate") == []
    with pytest.raises(RateLimited):
        adapter.terminate(ref)
    assert len(fake.asked("stop")) == 1
    fake.settle()
    adapter.terminate(ref)
    assert fake.machines == {}


def test_what_is_set_aside_is_not_left(adapter, fake):
    fake.purse, fake.blocked = Decimal("29.29"), 4290
    assert adapter.balance() == Money(Decimal(25), "CNY")


def test_a_key_and_a_script_go_through_the_start_command(adapter, fake):
    order = replace(fake.order(), ssh_public_key="ssh-ed25519 AAAAC3Nza alice's", user_data="echo 'hello'\n")
    ref = adapter.create(order, TOKEN)
    (sent,) = (request.json for request in fake.asked("create"))
    assert "alice'\"'\"'s' >> ~/.ssh/authorized_keys" in sent["start_command"]
    assert sent["start_command"].endswith("bash -c 'echo '\"'\"'hello'\"'\"'\n'")
    assert (sent["expand_system_disk_by_gb"], sent["data_center_list"]) == (50, ["bj-B1"])
    assert adapter.instance(Ref(ref.external_id)).name == f"train-{TOKEN}"


def test_an_order_that_leaves_the_place_open_is_told_where_it_went(adapter, fake):
    assert adapter.create(replace(fake.order(), region=""), TOKEN).region == "bj-B1"
    assert "data_center_list" not in fake.asked("create")[0].json


def test_a_machine_whose_place_cannot_be_read_is_kept(adapter, fake):
    fake.refuse(500, on="list")
    with pytest.raises(PartialCreate) as partial:
        adapter.create(fake.order(), TOKEN)
    assert list(fake.machines) == [partial.value.ref.external_id]


@pytest.mark.parametrize(
    "wish",
    [{"gpu_count": 5}, {"max_price_per_hour": Decimal(1)}, {"market": Market.SPOT}, {"gpu_count": 0}, {"image_id": ""}],
)
def test_a_wish_that_cannot_be_met_is_refused(adapter, fake, wish):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **wish), TOKEN)
    assert fake.asked("create") == []
