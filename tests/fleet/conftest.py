"""An AWS of our own: a moto server that the tests start, and the adapter for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.stub import Stubber

from fleet.providers.aws import Aws
from tests.fleet.moto_peer import moto_server, reset

P4D = "p4d.24xlarge"
AMI = "ami-0abcdef1234567890"
AWS_OPTIONS = {
    "access_key_id": "AKIAEXAMPLE000000000",
    "secret_access_key": "example/secret+key/0123456789abcdefghijk",
    "regions": "us-east-1, eu-west-1",
    "prices": "p4d.24xlarge 21.96\neu-west-1/p4d.24xlarge 23.90",
    "storage_price": "0.08",
}


@pytest.fixture(scope="session")
def moto_address() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def moto(moto_address: str, monkeypatch) -> str:
    """An empty AWS; boto3 finds it by the environment, as an operator would tell it."""
    reset(moto_address)
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_address)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return moto_address


@pytest.fixture
def make_aws():
    def make(**options: str) -> Aws:
        return Aws({**AWS_OPTIONS, **options})

    return make


@pytest.fixture
def ec2(moto, make_aws):
    """ec2("us-east-1") is a client of the same AWS, for the test's own hands."""
    return lambda region: make_aws()._client("ec2", region)


@pytest.fixture
def rent(ec2):
    """rent("us-east-1", count=2, …) starts machines there and returns their ids."""

    def run(
        region: str, *, kind: str = P4D, count: int = 1, name: str = "train", image: str = AMI, **more
    ) -> list[str]:
        answer = ec2(region).run_instances(
            ImageId=image,
            InstanceType=kind,
            MinCount=count,
            MaxCount=count,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}, {"Key": "use", "Value": "eval"}]}
            ],
            **more,
        )
        return [row["InstanceId"] for row in answer["Instances"]]

    return run


@pytest.fixture
def stub(make_aws, monkeypatch):
    """An adapter of one region, and the stubs by service: its clients answer what the test says and nothing else."""
    adapter = make_aws(regions="us-east-1")
    stubs = {}
    for service in ("ec2", "sts", "cloudwatch"):
        stubs[service] = Stubber(adapter._client(service, "us-east-1"))
        stubs[service].activate()
    monkeypatch.setattr(adapter, "_client", lambda service, region, attempts=2: stubs[service].client)
    yield adapter, stubs
    for each in stubs.values():
        each.assert_no_pending_responses()
