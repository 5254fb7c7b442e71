"""EC2 as a real server over HTTP tells it: every region, all pages, GPUs, disks, images, states."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.providers import aws_reads
from fleet.providers.base import Billing, InstanceState, Market, Money, Tenancy
from fleet.providers.errors import ProviderError
from tests.fleet.conftest import AMI, P4D


def test_an_empty_account_is_an_empty_listing(moto, make_aws):
    assert list(make_aws().instances()) == []


def test_a_p4d_is_eight_a100(rent, make_aws):
    (wanted,) = rent("us-east-1")
    (machine,) = make_aws().instances()
    assert (machine.ref.external_id, machine.ref.region, machine.name) == (wanted, "us-east-1", "train")
    assert (machine.state, machine.raw_state, machine.billing) == (InstanceState.RUNNING, "running", Billing.FULL)
    assert (machine.gpu_count, machine.gpu_raw, machine.gpu_model) == (8, "A100", "A100 SXM 40 GB")
    assert (machine.gpu_memory_mib, machine.vcpus, machine.ram_mib) == (40960, 96, 1179648)
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert machine.labels["use"] == "eval"
    assert machine.disk_gb
    assert machine.started_at
    assert machine.created_at
    assert machine.ssh[0].user == ""
    assert machine.extra["platform"] == "Linux/UNIX"


def test_every_region_is_read(rent, make_aws):
    rent("us-east-1", name="here")
    rent("eu-west-1", name="there")
    assert [(machine.ref.region, machine.name) for machine in make_aws().instances()] == [
        ("us-east-1", "here"),
        ("eu-west-1", "there"),
    ]


def test_all_pages_are_read(rent, make_aws, monkeypatch):
    monkeypatch.setattr(aws_reads, "PAGE_SIZE", 5)
    for _ in range(7):
        rent("us-east-1", count=2)
    assert len(list(make_aws().instances())) == 14


def test_prices_are_typed_the_regions_own_first(rent, make_aws):
    rent("us-east-1")
    rent("eu-west-1")
    rates = [machine.rate for machine in make_aws().instances()]
    assert rates == [Money(Decimal("21.96"), "USD"), Money(Decimal("23.90"), "USD")]


def test_a_type_without_a_price_is_unknown_and_not_free(rent, make_aws):
    rent("us-east-1", kind="g5.xlarge")
    (machine,) = make_aws().instances()
    assert machine.rate is None
    assert (machine.gpu_model, machine.gpu_count) == ("A10G", 1)


def test_a_type_without_gpus_has_none(rent, make_aws):
    rent("us-east-1", kind="m5.large")
    (machine,) = make_aws().instances()
    assert (machine.gpu_count, machine.gpu_raw) == (0, "")


def test_a_stopped_machine_is_billed_its_disks(rent, ec2, make_aws):
    ids = rent("us-east-1")
    ec2("us-east-1").stop_instances(InstanceIds=ids)
    (machine,) = make_aws().instances()
    assert (machine.state, machine.raw_state, machine.billing) == (InstanceState.STOPPED, "stopped", Billing.STORAGE)
    assert machine.storage_rate == Money(machine.disk_gb * Decimal("0.08") / 730, "USD")
    assert machine.stopped_at is not None


def test_a_terminated_one_is_not_billed(rent, ec2, make_aws):
    ec2("us-east-1").terminate_instances(InstanceIds=rent("us-east-1"))
    (machine,) = make_aws().instances()
    assert (machine.state, machine.billing) == (InstanceState.TERMINATED, Billing.NONE)


def test_disks_are_added_up(rent, ec2, make_aws):
    (machine_id,) = rent("us-east-1")
    client = ec2("us-east-1")
    zone = client.describe_instances()["Reservations"][0]["Instances"][0]["Placement"]["AvailabilityZone"]
    volume = client.create_volume(Size=500, AvailabilityZone=zone)["VolumeId"]
    before = next(iter(make_aws().instances())).disk_gb
    client.attach_volume(VolumeId=volume, InstanceId=machine_id, Device="/dev/sdf")
    assert next(iter(make_aws().instances())).disk_gb == before + 500


def test_spot_is_read_from_the_price_history(ec2, rent, make_aws):
    ec2("us-east-1").request_spot_instances(
        InstanceCount=1, LaunchSpecification={"ImageId": AMI, "InstanceType": P4D}, SpotPrice="9.00"
    )
    (machine,) = make_aws().instances()
    assert (machine.market, machine.rate) == (Market.SPOT, Money(Decimal("0.00001"), "USD"))


def test_own_images_are_listed_and_named_on_the_machines_that_use_them(rent, ec2, make_aws):
    (machine_id,) = rent("us-east-1")
    own = ec2("us-east-1").create_image(InstanceId=machine_id, Name="vision 2.4")["ImageId"]
    images = list(make_aws().images())
    assert [(image.external_id, image.name, image.region) for image in images] == [(own, "vision 2.4", "us-east-1")]
    assert images[0].created_at is not None
    rent("us-east-1", image=own, name="from it")
    names = {machine.name: machine.image_name for machine in make_aws().instances()}
    assert names == {"train": "", "from it": "vision 2.4"}


def test_verify_reads_the_account_and_what_the_key_may(moto, make_aws):
    info = make_aws().verify()
    assert (info.external_id, info.currency, info.lacks) == ("123456789012", "USD", ())


def test_a_server_that_is_not_there_is_a_provider_error(make_aws, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ProviderError) as failed:
        make_aws().verify()
    assert failed.value.kind == "unavailable"
