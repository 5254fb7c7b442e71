"""EC2 over HTTP: a machine is rented, stopped, saved, started and ended, and what was asked is seen in its next reading."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.providers.base import Capability, CreateSpec, ImageState, InstanceState, Market, Ref
from fleet.providers.errors import Invalid, ProviderError
from tests.fleet.conftest import AMI, P4D

SPEC = CreateSpec(name="train", offer_id=P4D, region="us-east-1", image_id=AMI, labels={"use": "eval"})
TOKEN = "rr-0123456789abcdef"
NOBODY = Ref("i-00000000000000000", "us-east-1")


def with_(**changes):
    return CreateSpec(**{name: getattr(SPEC, name) for name in SPEC.__dataclass_fields__} | changes)


def test_a_machine_is_rented_and_found_by_its_token(moto, make_aws):
    adapter = make_aws()
    ref = adapter.create(SPEC, TOKEN)
    machine = adapter.instance(ref)
    assert (machine.name, machine.instance_type, machine.market) == ("train", P4D, Market.ON_DEMAND)
    assert (machine.labels["use"], machine.labels["rackrent-launch"]) == ("eval", TOKEN)
    assert machine.extra["client_token"] == TOKEN
    assert list(adapter.instances()) == [machine]


def test_a_spot_machine_has_the_price_it_may_cost(moto, make_aws):
    adapter = make_aws()
    machine = adapter.instance(adapter.create(with_(market=Market.SPOT, max_price_per_hour=Decimal("9.5")), TOKEN))
    assert machine.market is Market.SPOT


def test_key_script_and_disk_go_along(moto, ec2, make_aws):
    adapter = make_aws()
    own = ec2("us-east-1").create_image(InstanceId=adapter.create(SPEC, TOKEN).external_id, Name="base")["ImageId"]
    spec = with_(image_id=own, ssh_public_key=KEY, user_data="#!/bin/sh\ntrue", disk_gb=300)
    for token in ("rr-1", "rr-2"):
        ref = adapter.create(spec, token)
    row = ec2("us-east-1").describe_instances(InstanceIds=[ref.external_id])["Reservations"][0]["Instances"][0]
    assert [pair["KeyName"] for pair in ec2("us-east-1").describe_key_pairs()["KeyPairs"]] == [row["KeyName"]]
    assert adapter.instance(ref).disk_gb == 300
    script = ec2("us-east-1").describe_instance_attribute(InstanceId=ref.external_id, Attribute="userData")
    assert script["UserData"]["Value"]


KEY = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDusXfgTE4eBP50NglSzCSEGnIL6+cr6m3H6cZANOQ+P1o/W4BdtcAL3sor4iGi7SOeJgo8kweyMQrhrt6HaKGgromRiz37LQx+4YIsDW+DVWxk08CzQA5qUTCYWj3nxTRhTDNxIsNqsSJ7xdzQWOYLhBnQ2P0JXQyXNdTvWJ3gmNMLLXSBQ8hOQqoWmOyGRlQJkaeORzHkJVTxEmlfqhVFrjgbY5yAGZzhADaGyzU7/hqVB4t2EL1XVEIg5T06nRwrNdf3AbZBgJZr8MtSmBJHC7uDGUYmTcfE6VNHO3nBGPoTnlHBWPbGu1Ahmfp7oNcxYJvcyYLVOKBb58YgKQ3p u@h"


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"image_id": ""}, "image"), ({"region": "ap-east-1"}, "ap-east-1")],
)
def test_an_order_that_cannot_be_met_says_what_to_change(moto, make_aws, changes, says):
    with pytest.raises(Invalid, match=says):
        make_aws().create(with_(**changes), TOKEN)


def test_it_is_stopped_started_and_ended(rent, make_aws):
    adapter = make_aws()
    ref = Ref(rent("us-east-1")[0], "us-east-1")
    seen = []
    for act in (adapter.stop, adapter.stop, adapter.start, adapter.start, adapter.reboot, adapter.terminate):
        act(ref)
        seen.append(adapter.instance(ref).state)
    stopped, running = InstanceState.STOPPED, InstanceState.RUNNING
    assert seen == [stopped, stopped, running, running, running, InstanceState.TERMINATED]
    adapter.terminate(ref)


def test_what_does_not_exist_is_none_and_is_ended_already(moto, make_aws):
    assert make_aws().instance(NOBODY) is None
    make_aws().terminate(NOBODY)
    with pytest.raises(ProviderError) as refused:
        make_aws().stop(NOBODY)
    assert refused.value.kind == "not_found"


def test_what_ec2_accepts_follows_the_state(rent, make_aws):
    adapter = make_aws()
    ref = Ref(rent("us-east-1")[0], "us-east-1")
    assert Capability.STOP in adapter.instance(ref).actions
    adapter.stop(ref)
    assert Capability.START in adapter.instance(ref).actions
    adapter.terminate(ref)
    assert adapter.instance(ref).actions == frozenset()


def test_an_image_is_pending_until_it_is_listed_as_ready(rent, make_aws):
    adapter = make_aws()
    image = adapter.save_image(Ref(rent("us-east-1")[0], "us-east-1"), "vision 2.4")
    assert (image.name, image.region, image.state) == ("vision 2.4", "us-east-1", ImageState.PENDING)
    (listed,) = adapter.images()
    assert (listed.external_id, listed.state) == (image.external_id, ImageState.READY)
    assert listed.size_gb


def test_a_name_that_ec2_cannot_take_is_refused_with_the_reason(moto, make_aws):
    with pytest.raises(Invalid, match="Name, value: 2"):
        make_aws().save_image(NOBODY, "v1")
