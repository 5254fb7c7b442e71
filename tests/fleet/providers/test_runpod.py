"""RunPod's own ways, beyond the contract: disks of stopped pods, locks and clusters, clouds, orders."""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Capability, Market, Money, OfferQuery, Ssh, Tenancy
from fleet.providers.errors import Invalid, NoCapacity, WrongState
from tests.fleet.providers.fakes.runpod import H100

KIND = "runpod"
RTX = "NVIDIA GeForce RTX 4090"


@pytest.fixture
def runpod(fake):
    return fake


@pytest.fixture
def pod(runpod):
    runpod.seed()
    return runpod.machines["pod001"]


def only(adapter):
    (machine,) = adapter.instances()
    return machine


def test_a_pod_in_our_words(adapter, pod):
    machine = only(adapter)
    assert (machine.gpu_raw, machine.gpu_model, machine.gpu_count) == (H100, "H100 SXM", 2)
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert machine.rate == Money(Decimal("5.98"), "USD")
    assert machine.disk_gb == 70
    assert machine.ssh[0] == Ssh("203.0.113.9", 30022, "root", "direct")
    assert machine.ssh[1].kind == "proxy"
    assert machine.usage.gpu_memory_percent == (71.0, 71.0)
    assert (machine.usage.cpu_percent, machine.usage.memory_percent) == (12, 30)


def test_the_volume_of_a_stopped_pod_costs_although_its_cost_says_nothing(adapter, runpod, pod):
    runpod.put_state(pod, "EXITED")
    machine = only(adapter)
    assert pod["cost"] == 0
    assert machine.rate is None
    assert machine.storage_rate == Money(20 * Decimal("0.20") / 730, "USD")


def test_a_stopped_pod_without_a_volume_of_its_own_costs_nothing(adapter, runpod, pod):
    runpod.put_state(pod, "EXITED")
    pod["mounts"] = {"network": [{"volumeId": "vol1", "path": "/workspace"}]}
    machine = only(adapter)
    assert machine.billing is Billing.NONE
    assert machine.extra["network_volumes"] == ["vol1"]


def test_a_community_pod_shares_a_strangers_host(adapter, pod):
    pod["cloud"] = "COMMUNITY"
    assert only(adapter).tenancy is Tenancy.COMMUNITY_HOST


def test_a_locked_pod_says_that_it_cannot_be_stopped_and_refuses(adapter, runpod, pod):
    pod["locked"] = True
    machine = only(adapter)
    assert machine.actions == {Capability.TERMINATE}
    with pytest.raises(WrongState):
        adapter.stop(machine.ref)
    assert only(adapter).state == machine.state


def test_a_member_of_a_cluster_is_seen_and_cannot_be_acted_on_alone(adapter, runpod, pod):
    pod["cluster"] = {"id": "c1", "rank": 0}
    assert only(adapter).actions == frozenset()
    assert runpod.asked("list")[0].query == {"includeClusterPods": "true"}


def test_a_pod_without_gpus_tells_its_cpus(adapter, pod):
    del pod["gpu"]
    pod["cpu"] = {"id": "cpu5c", "vcpuCount": 4, "memory": 8}
    pod["runtime"] = {"cpu": {"util": 3}}
    machine = only(adapter)
    assert (machine.gpu_count, machine.vcpus, machine.ram_mib) == (0, 4, 8192)


def test_the_cloud_is_always_named(adapter, runpod):
    """Left out it would be the dearer one, whatever was chosen."""
    runpod.seed(0)
    order = replace(runpod.order(), offer_id=f"COMMUNITY:1:{RTX}", region="EU-RO-1")
    adapter.create(order, "rr-0123456789abcdef")
    sent = runpod.asked("create")[0].json
    assert (sent["cloud"], sent["gpu"], sent["dataCenterIds"]) == ("COMMUNITY", {"id": RTX, "count": 1}, ["EU-RO-1"])


def test_an_order_carries_key_script_and_disk(adapter, runpod):
    order = replace(runpod.order(), ssh_public_key="ssh-ed25519 AAAA", user_data="echo hi")
    adapter.create(order, "rr-0123456789abcdef")
    sent = runpod.asked("create")[0].json
    assert sent["env"]["PUBLIC_KEY"] == "ssh-ed25519 AAAA"
    assert base64.b64decode(sent["env"]["RACKRENT_FIRST_START"]).decode() == "echo hi"
    assert "RACKRENT_FIRST_START" in sent["args"]
    assert sent["disk"] == 40
    assert "22/tcp" in sent["ports"]


@pytest.mark.parametrize(
    ("image", "field"), [("30zmvf89kd", "templateId"), ("ubuntu:24.04", "image"), ("a/b", "image")]
)
def test_an_image_is_a_template_or_a_reference(adapter, runpod, image, field):
    adapter.create(replace(runpod.order(), image_id=image), "rr-0123456789abcdef")
    assert runpod.asked("create")[0].json[field] == image


@pytest.mark.parametrize(
    "change", [{"market": Market.SPOT}, {"image_id": ""}, {"offer_id": "SECURE:two:x"}], ids=["spot", "image", "offer"]
)
def test_what_runpod_does_not_rent_is_refused_before_it_is_asked(adapter, runpod, change):
    with pytest.raises(Invalid):
        adapter.create(replace(runpod.order(), **change), "rr-0123456789abcdef")
    assert runpod.requests == []


def test_a_broken_rule_is_not_taken_for_want_of_machines(adapter, runpod):
    runpod.refuse(400, on="create", message="mounts.persistent is invalid when cpu is set")
    with pytest.raises(Invalid) as refused:
        adapter.create(runpod.order(), "rr-0123456789abcdef")
    assert not isinstance(refused.value, NoCapacity)
    assert "mounts.persistent" in refused.value.detail


def test_a_place_without_machines_is_want_of_capacity(adapter, runpod):
    runpod.refuse(400, on="create", message="This GPU and data center combination could not be placed.")
    with pytest.raises(NoCapacity):
        adapter.create(runpod.order(), "rr-0123456789abcdef")


def test_offers_of_both_clouds_with_the_stock_of_each_place(adapter):
    offers = list(adapter.offers(OfferQuery(gpu_count=2)))
    secure = {offer.region: offer for offer in offers if offer.external_id == f"SECURE:2:{H100}"}
    assert (secure["EU-RO-1"].available, secure["US-TX-3"].available) == (True, False)
    (community,) = [offer for offer in offers if offer.tenancy is Tenancy.COMMUNITY_HOST]
    assert (community.external_id, community.region) == (f"COMMUNITY:2:{RTX}", "")
    assert community.price == Money(Decimal("0.68"), "USD")
    assert community.gpu_memory_mib == 24 * 1024


def test_a_number_of_gpus_beyond_one_machine_is_not_offered(adapter):
    assert f"COMMUNITY:8:{RTX}" not in {offer.external_id for offer in adapter.offers(OfferQuery())}


def test_verify_tells_the_parts_that_a_key_may_not_read(adapter, runpod):
    runpod.refuse(403, on="images")
    scopes = {scope.name: scope.granted for scope in adapter.verify().scopes}
    assert scopes == {"pods": True, "templates": False, "catalog": True}
