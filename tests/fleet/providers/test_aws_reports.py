"""Announced events, spot that is marked to go, and CloudWatch's figures."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet.providers.base import NoticeKind, Ref
from fleet.providers.errors import ScopeMissing

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
REF = Ref("i-1", "us-east-1")


def announced(stub, events=(), requests=()):
    adapter, stubs = stub
    stubs["ec2"].add_response(
        "describe_instance_status", {"InstanceStatuses": [{"InstanceId": "i-1", "Events": list(events)}]}
    )
    stubs["ec2"].add_response("describe_spot_instance_requests", {"SpotInstanceRequests": list(requests)})
    return list(adapter.notices())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("system-maintenance", NoticeKind.MAINTENANCE),
        ("instance-retirement", NoticeKind.RETIREMENT),
        ("a-word-of-2028", NoticeKind.OTHER),
    ],
)
def test_an_event_is_a_notice(stub, code, kind):
    event = {"InstanceEventId": "ie-1", "Code": code, "Description": "The host goes.", "NotBefore": NOON}
    (notice,) = announced(stub, [event])
    assert (notice.ref, notice.kind, notice.key) == (REF, kind, "ie-1")
    assert (notice.starts_at, notice.detail) == (NOON, "The host goes.")


@pytest.mark.parametrize("text", ["[Completed] The host went.", "[Canceled] It stays."])
def test_an_event_that_is_over_is_none(stub, text):
    assert announced(stub, [{"Code": "instance-stop", "Description": text, "NotBefore": NOON}]) == []


def test_spot_that_is_marked_goes_two_minutes_later(stub):
    status = {"Code": "marked-for-termination", "UpdateTime": NOON, "Message": "Reclaimed."}
    marked = {"SpotInstanceRequestId": "sir-1", "InstanceId": "i-1", "Status": status}
    stays = {"SpotInstanceRequestId": "sir-2", "InstanceId": "i-2", "Status": {"Code": "fulfilled"}}
    (notice,) = announced(stub, requests=[marked, stays])
    assert (notice.ref, notice.kind, notice.key) == (REF, NoticeKind.INTERRUPTION, "sir-1:marked-for-termination")
    assert notice.starts_at == NOON.replace(minute=2)


@pytest.fixture
def figures(moto, make_aws):
    """figures(namespace, metric, value, **dimensions) writes a figure of now, as Amazon or its agent would."""
    cloudwatch = make_aws()._client("cloudwatch", "us-east-1")

    def put(space: str, metric: str, value: float, **dimensions: str) -> None:
        named = [{"Name": key, "Value": word} for key, word in dimensions.items()]
        datum = {"MetricName": metric, "Dimensions": named, "Value": value, "Timestamp": datetime.now(UTC)}
        cloudwatch.put_metric_data(Namespace=space, MetricData=[datum])

    return put


def test_cloudwatch_tells_cpu_network_and_with_its_agent_gpus(figures, make_aws):
    figures("AWS/EC2", "CPUUtilization", 12.5, InstanceId="i-1")
    figures("AWS/EC2", "NetworkIn", 30_000, InstanceId="i-1")
    figures("AWS/EC2", "NetworkOut", 3_000, InstanceId="i-1")
    for index, busy in (("1", 71.0), ("10", 10.0), ("0", 93.0)):
        figures("CWAgent", "nvidia_smi_utilization_gpu", busy, InstanceId="i-1", index=index, name="A100")
    figures("CWAgent", "nvidia_smi_utilization_gpu", 5.0, InstanceId="i-of-somebody-else", index="0")
    (usage,) = make_aws().metrics([REF, Ref("i-silent", "us-east-1"), Ref("i-1", "eu-west-1")])
    assert (usage.ref, usage.cpu_percent, usage.gpu_utilization_percent) == (REF, 12.5, (93.0, 71.0, 10.0))
    assert (usage.network_received_bytes_per_s, usage.network_sent_bytes_per_s) == (100.0, 10.0)
    assert (usage.gpu_memory_percent, usage.disk_read_bytes_per_s) == ((), None)
    assert usage.at is not None


def test_no_machine_is_no_question(stub):
    assert list(stub[0].metrics([])) == []


def test_many_machines_are_asked_in_few_calls(stub):
    adapter, stubs = stub
    for _ in range(2):
        stubs["cloudwatch"].add_response("list_metrics", {"Metrics": []})
    for _ in range(2):
        stubs["cloudwatch"].add_response("get_metric_data", {"MetricDataResults": []})
    assert list(adapter.metrics([Ref(f"i-{number}", "us-east-1") for number in range(200)])) == []


def test_a_key_that_may_not_read_cloudwatch_says_so(stub):
    adapter, stubs = stub
    stubs["cloudwatch"].add_client_error("list_metrics", "AccessDenied", "cloudwatch:ListMetrics", 403)
    with pytest.raises(ScopeMissing, match="ListMetrics"):
        list(adapter.metrics([REF]))
