"""Lambda's own ways, beyond the contract: codes, keys, regions that are sold out, ends that were begun already."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers import lambdacloud
from fleet.providers.base import Capability, InstanceState, Market, Money, OfferQuery, Ssh
from fleet.providers.errors import Invalid, NoCapacity, QuotaOrFunds, Unavailable, WrongState
from tests.fleet.providers.fakes.lambdacloud import H100X8

KIND = "lambda"
TOKEN = "rr-0123456789abcdef"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def cloud(fake):
    return fake


def refusal(code: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": "No.", "suggestion": "Try later."}}).encode()


def test_a_machine_in_our_words(adapter, cloud):
    cloud.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_raw, machine.gpu_model) == ("H100 (80 GB SXM5)", "H100 SXM")
    assert (machine.gpu_count, machine.gpu_memory_mib) == (8, 80 * 1024)
    assert machine.rate == Money(Decimal("23.92"), "USD")
    assert machine.ssh == (Ssh("198.51.100.2", 22, "ubuntu"),)
    assert machine.labels == {"use": "eval"}
    assert machine.actions == {Capability.REBOOT, Capability.TERMINATE}
    assert (machine.vcpus, machine.ram_mib, machine.disk_gb) == (208, 1800 * 1024, 2816)
    assert machine.created_at is None


@pytest.mark.parametrize(
    ("description", "model"),
    [
        ("A100 (40 GB SXM4)", "A100 SXM 40 GB"),
        ("A100 (80 GB SXM4)", "A100 SXM 80 GB"),
        ("A100 (40 GB PCIe)", "A100 PCIe 40 GB"),
        ("H100 (80 GB PCIe)", "H100 PCIe"),
        ("A10 (24 GB PCIe)", "A10"),
        ("GH200 (96 GB)", "GH200"),
        ("B200 (180 GB SXM6)", "B200"),
        ("A6000 (48 GB)", "RTX A6000"),
        ("something new", "something new"),
    ],
)
def test_gpus_are_told_by_chip_memory_and_form(adapter, cloud, description, model):
    (ref,) = cloud.seed()
    cloud.machines[ref.external_id]["instance_type"]["gpu_description"] = description
    (machine,) = adapter.instances()
    assert machine.gpu_model == model


def test_a_type_without_a_region_is_sold_out(adapter):
    offers = {(offer.external_id, offer.region): offer for offer in adapter.offers(OfferQuery())}
    assert offers["gpu_1x_a10", ""].available is False
    assert offers[H100X8, "us-west-1"].available is True
    assert offers[H100X8, "us-west-1"].gpu_interconnect == "nvlink"


def test_it_cannot_be_asked_to_stop(adapter):
    assert not hasattr(adapter, "stop")
    assert not type(adapter).semantics.can_stop
    assert type(adapter).semantics.terminate_loses_data


def test_an_end_that_was_begun_already_is_accepted(adapter, cloud):
    (ref,) = cloud.seed()
    cloud.put_state(cloud.machines[ref.external_id], "terminating")
    cloud.refuse(500, refusal("global/unknown"), JSON, on="terminate")
    adapter.terminate(ref)
    assert adapter.instance(ref).state is InstanceState.TERMINATING


def test_an_end_that_is_refused_for_another_reason_is_refused(adapter, cloud):
    (ref,) = cloud.seed()
    cloud.refuse(500, refusal("global/unknown"), JSON, on="terminate")
    with pytest.raises(WrongState):
        adapter.terminate(ref)


def test_the_key_of_the_order_is_stored_once_and_used(adapter, cloud):
    order = replace(cloud.order(), ssh_public_key="ssh-ed25519 AAAAC3bob bob@desk")
    adapter.create(order, TOKEN)
    adapter.create(replace(order, ssh_public_key="ssh-ed25519 AAAAC3bob bob@laptop"), TOKEN)
    names = [request.json["ssh_key_names"] for request in cloud.asked("create")]
    assert names[0] == names[1] == [cloud.keys[1]["name"]]
    assert len(cloud.keys) == 2


def test_without_a_key_the_accounts_first_is_used(adapter, cloud):
    adapter.create(cloud.order(), TOKEN)
    assert cloud.asked("create")[0].json["ssh_key_names"] == ["alice"]


def test_without_any_key_nothing_is_rented(adapter, cloud):
    cloud.keys.clear()
    with pytest.raises(Invalid, match="SSH key"):
        adapter.create(cloud.order(), TOKEN)
    assert cloud.asked("create") == []


def test_the_token_and_the_labels_are_tags(adapter, cloud):
    adapter.create(replace(cloud.order(), name="n" * 80, labels={"Cost Centre": "v" * 200}), TOKEN)
    (machine,) = adapter.instances()
    assert machine.labels == {"rackrent-token": TOKEN, "cost-centre": "v" * 128}
    assert machine.name.endswith(TOKEN)
    assert len(machine.name) == 64


@pytest.mark.parametrize(
    ("image", "field"), [("43336648-096d-4cba-9aa2-f9bb7727639d", "id"), ("lambda-stack-24-04", "family")]
)
def test_an_image_is_an_id_or_a_family(adapter, cloud, image, field):
    adapter.create(replace(cloud.order(), image_id=image), TOKEN)
    assert cloud.asked("create")[0].json["image"] == {field: image}


@pytest.mark.parametrize(
    "change", [{"market": Market.SPOT}, {"region": ""}, {"disk_gb": 200}], ids=["spot", "no region", "disk"]
)
def test_what_lambda_does_not_rent_is_refused_before_it_is_asked(adapter, cloud, change):
    with pytest.raises(Invalid):
        adapter.create(replace(cloud.order(), **change), TOKEN)
    assert cloud.requests == []


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("global/quota-exceeded", 400, QuotaOrFunds),
        ("global/account-inactive", 403, QuotaOrFunds),
        ("instance-operations/launch/insufficient-capacity", 400, NoCapacity),
        ("provider/internal-unavailable", 400, Unavailable),
        ("global/tomorrows-code", 400, Invalid),
    ],
)
def test_errors_are_told_apart_by_code(adapter, cloud, code, status, error):
    cloud.refuse(status, refusal(code), JSON, on="create")
    with pytest.raises(error, match=r"No\. Try later\."):
        adapter.create(cloud.order(), TOKEN)


def test_calls_keep_a_second_apart(adapter, cloud, monkeypatch):
    waited: list[object] = []
    monkeypatch.setattr(lambdacloud.PACE, "wait", waited.append)
    list(adapter.instances())
    adapter.create(cloud.order(), TOKEN)
    assert len(waited) == len(cloud.requests) == 3
