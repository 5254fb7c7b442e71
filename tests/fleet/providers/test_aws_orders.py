"""What EC2 is asked, word for word: for what a test server does not hold us to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest
from botocore.stub import ANY

from fleet.providers.base import CreateSpec, Market, Ref
from fleet.providers.errors import Invalid, NoCapacity, Unavailable, WrongState
from tests.fleet.providers.fakes.server import Answer, Loopback, Request

TOKEN = "rr-0123456789abcdef"
REF = Ref("i-1", "us-east-1")
MADE = {"Instances": [{"InstanceId": "i-1"}]}


def spec(**more) -> CreateSpec:
    return CreateSpec(name="train", offer_id="p4d.24xlarge", image_id="ami-1", **more)


def order(**more):
    one = {"ImageId": "ami-1", "InstanceType": "p4d.24xlarge", "MinCount": 1, "MaxCount": 1}
    return {**one, "ClientToken": TOKEN, "TagSpecifications": ANY, **more}


def test_the_token_is_the_client_token_and_a_tag(stub):
    adapter, stubs = stub
    tags = [{"Key": "Name", "Value": "train"}, {"Key": "rackrent-launch", "Value": TOKEN}]
    asked = order(TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")])
    stubs["ec2"].add_response("run_instances", MADE, asked)
    assert adapter.create(spec(), TOKEN) == REF


def test_spot_is_ordered_once_and_at_most_at_its_price(stub):
    adapter, stubs = stub
    market = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time", "MaxPrice": "9.5"}}
    stubs["ec2"].add_response("run_instances", MADE, order(InstanceMarketOptions=market))
    adapter.create(spec(market=Market.SPOT, max_price_per_hour=Decimal("9.5")), TOKEN)


def test_an_image_without_a_root_disk_cannot_be_made_larger(stub):
    adapter, stubs = stub
    stubs["ec2"].add_response("describe_images", {"Images": [{"ImageId": "ami-1"}]})
    with pytest.raises(Invalid, match="no root disk"):
        adapter.create(spec(disk_gb=300), TOKEN)


def test_a_key_that_ec2_has_already_is_used(stub):
    adapter, stubs = stub
    stubs["ec2"].add_client_error("import_key_pair", "InvalidKeyPair.Duplicate", "there", 400)
    stubs["ec2"].add_response("run_instances", MADE, order(KeyName=ANY))
    adapter.create(spec(ssh_public_key="ssh-ed25519 AAAA"), TOKEN)


def test_an_answer_without_the_machine_refuses_nothing(stub):
    adapter, stubs = stub
    stubs["ec2"].add_response("run_instances", {"Instances": []}, order())
    with pytest.raises(Unavailable):
        adapter.create(spec(), TOKEN)


def test_a_launch_without_capacity_says_so(stub):
    adapter, stubs = stub
    stubs["ec2"].add_client_error("run_instances", "InsufficientInstanceCapacity", "none left", 500)
    with pytest.raises(NoCapacity, match="none left"):
        adapter.create(spec(), TOKEN)


def test_the_request_of_a_spot_machine_ends_before_it(stub):
    """A persistent one would start a new machine in its place."""
    adapter, stubs = stub
    row = {"InstanceId": "i-1", "SpotInstanceRequestId": "sir-1"}
    stubs["ec2"].add_response("describe_instances", {"Reservations": [{"Instances": [row]}]})
    stubs["ec2"].add_response("cancel_spot_instance_requests", {}, {"SpotInstanceRequestIds": ["sir-1"]})
    stubs["ec2"].add_response("terminate_instances", {}, {"InstanceIds": ["i-1"]})
    adapter.terminate(REF)


def test_a_machine_that_goes_while_it_is_ended_is_ended(stub):
    adapter, stubs = stub
    stubs["ec2"].add_response("describe_instances", {"Reservations": [{"Instances": [{"InstanceId": "i-1"}]}]})
    stubs["ec2"].add_client_error("terminate_instances", "InvalidInstanceID.NotFound", "gone", 400)
    adapter.terminate(REF)


def test_a_stop_that_spot_does_not_allow_is_the_wrong_state(stub):
    adapter, stubs = stub
    stubs["ec2"].add_client_error("stop_instances", "UnsupportedOperation", "one-time Spot request", 400)
    with pytest.raises(WrongState, match="one-time"):
        adapter.stop(REF)


def test_an_image_is_made_without_stopping_what_runs(stub):
    adapter, stubs = stub
    asked = {"InstanceId": "i-1", "Name": "vision", "NoReboot": True}
    stubs["ec2"].add_response("create_image", {"ImageId": "ami-2"}, asked)
    assert adapter.save_image(REF, "vision").external_id == "ami-2"


@pytest.mark.parametrize("act", ["start", "stop", "reboot"])
def test_an_act_whose_answer_fails_is_not_tried_again(make_aws, monkeypatch, act):
    """By an HTTP server that always fails: a stub knows no second attempt."""
    with failing_server() as (address, seen):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(Unavailable):
            getattr(make_aws(), act)(REF)
        assert len(seen) == 1
        with pytest.raises(Unavailable):
            make_aws().instance(REF)
        assert len(seen) == 3


@contextmanager
def failing_server() -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []

    def fail(request: Request) -> Answer:
        seen.append(request.path)
        return Answer(500, b"<html>oops</html>", {"Content-Type": "text/html"})

    server = Loopback(fail)
    yield server.url, seen
    server.close()
