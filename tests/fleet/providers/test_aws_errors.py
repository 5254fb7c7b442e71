"""What botocore raises becomes ours, and nothing of the key comes along."""

from __future__ import annotations

import traceback

import pytest

from fleet.inventory.listing import Listing, read_listing
from fleet.providers.aws_errors import provider_errors
from fleet.providers.errors import InvalidOption, ProviderError, RateLimited
from tests.fleet.conftest import AWS_OPTIONS


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AuthFailure", 401, "auth_failed"),
        ("InvalidClientTokenId", 403, "auth_failed"),
        ("SignatureDoesNotMatch", 403, "auth_failed"),
        ("UnauthorizedOperation", 403, "scope_missing"),
        ("OptInRequired", 401, "scope_missing"),
        ("RequestLimitExceeded", 503, "rate_limited"),
        ("IncorrectInstanceState", 400, "wrong_state"),
        ("InsufficientInstanceCapacity", 500, "no_capacity"),
        ("VcpuLimitExceeded", 400, "quota_or_funds"),
        ("InvalidInstanceID.NotFound", 400, "not_found"),
        ("InvalidParameterValue", 400, "invalid"),
        ("InternalError", 500, "unavailable"),
        ("SomethingNew", 429, "rate_limited"),
        ("SomethingNew", 0, "unavailable"),
    ],
)
def test_codes(stub, code, status, kind):
    adapter, stubs = stub
    stubs["ec2"].add_client_error("describe_instances", code, "no", status)
    with pytest.raises(ProviderError) as failed:
        list(adapter.instances())
    assert failed.value.kind == kind
    assert failed.value.detail.startswith("us-east-1: ")


def test_the_wait_that_aws_asks_for_is_kept(stub):
    adapter, stubs = stub
    stubs["ec2"].add_client_error(
        "describe_instances",
        "Throttling",
        "slow down",
        429,
        response_meta={"HTTPHeaders": {"retry-after": "42"}},
    )
    with pytest.raises(RateLimited) as failed:
        list(adapter.instances())
    assert failed.value.retry_after == 42


def test_a_listing_that_breaks_on_its_second_page_yields_nothing_of_the_region(stub):
    adapter, stubs = stub
    page = {"Reservations": [{"Instances": [{"InstanceId": "i-1", "InstanceType": "p4d.24xlarge"}]}], "NextToken": "2"}
    stubs["ec2"].add_response("describe_instances", page)
    stubs["ec2"].add_client_error("describe_instances", "InternalError", "oops", 500)
    listing = adapter.instances()
    with pytest.raises(ProviderError):
        next(listing)


def test_a_key_that_may_only_list_machines_leaves_the_rest_unknown(stub):
    adapter, stubs = stub
    machine = {
        "InstanceId": "i-1",
        "InstanceType": "p4d.24xlarge",
        "ImageId": "ami-1",
        "State": {"Name": "running"},
        "Placement": {"AvailabilityZone": "us-east-1a"},
    }
    stubs["ec2"].add_response("describe_instances", {"Reservations": [{"Instances": [machine]}]})
    for operation in ("describe_instance_types", "describe_volumes", "describe_images"):
        stubs["ec2"].add_client_error(operation, "UnauthorizedOperation", "no", 403)
    (found,) = adapter.instances()
    assert (found.gpu_count, found.disk_gb, found.image_name) == (None, None, "")


def test_a_key_that_may_not_list_images_does_not_say_that_there_are_none(stub):
    adapter, stubs = stub
    stubs["ec2"].add_response("describe_instances", {"Reservations": []})
    stubs["ec2"].add_client_error("describe_images", "UnauthorizedOperation", "no", 403)
    assert read_listing(adapter, timeout_seconds=60) == Listing(machines=(), images=None)


def test_verify_says_which_permissions_are_missing(stub):
    adapter, stubs = stub
    stubs["sts"].add_response("get_caller_identity", {"Account": "123456789012"})
    for operation, code in (
        ("describe_instances", "DryRunOperation"),
        ("describe_instance_types", "DryRunOperation"),
        ("describe_volumes", "UnauthorizedOperation"),
        ("describe_images", "DryRunOperation"),
        ("describe_spot_price_history", "UnauthorizedOperation"),
        ("describe_spot_instance_requests", "DryRunOperation"),
        ("describe_instance_status", "DryRunOperation"),
    ):
        stubs["ec2"].add_client_error(operation, code, "dry", 412)
    assert adapter.verify().lacks == ("ec2:DescribeVolumes", "ec2:DescribeSpotPriceHistory")


def test_an_answer_that_ec2_does_not_promise_is_unavailable():
    with pytest.raises(ProviderError) as failed, provider_errors("eu-west-1"):
        raise KeyError("Reservations")
    assert failed.value.kind == "unavailable"


def test_no_traceback_carries_the_key(stub):
    adapter, stubs = stub
    stubs["ec2"].add_client_error("describe_instances", "AuthFailure", "no", 401)
    with pytest.raises(ProviderError) as failed:
        list(adapter.instances())
    shown = "".join(traceback.format_exception(failed.value)) + repr(adapter)
    assert AWS_OPTIONS["secret_access_key"] not in shown
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("access_key_id", " ", "Fill this in"),
        ("secret_access_key", "", "Fill this in"),
        ("regions", "", "at least one region"),
        ("regions", "us-east-1, mars-north-1", "mars-north-1"),
        ("prices", "p4d.24xlarge 21.96\n\np5.48xlarge cheap", "Line 3"),
        ("prices", "just words", "Line 1"),
        ("prices", "p4d.24xlarge -1", "Line 1"),
        ("storage_price", "free", "as in 0.08"),
        ("storage_price", "NaN", "as in 0.08"),
    ],
)
def test_an_option_that_cannot_be_used_names_its_field(make_aws, field, value, says):
    with pytest.raises(InvalidOption, match=says) as refused:
        make_aws(**{field: value})
    assert refused.value.field == field
