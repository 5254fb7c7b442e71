"""What EC2 and CloudWatch report: announced events, spot reclaims, and use as Amazon measures it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from fleet.providers.aws_reads import every
from fleet.providers.base import Notice, NoticeKind, ProviderUsage, Ref

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html
EVENTS = {
    "instance-reboot": NoticeKind.MAINTENANCE,
    "system-reboot": NoticeKind.MAINTENANCE,
    "system-maintenance": NoticeKind.MAINTENANCE,
    "instance-retirement": NoticeKind.RETIREMENT,
    "instance-stop": NoticeKind.RETIREMENT,
}
# An event that is over stays listed for two weeks, with this before its text.
OVER = ("[Completed]", "[Canceled]")
# Spot capacity goes two minutes after it was marked.
SPOT_NOTICE = timedelta(minutes=2)
# CloudWatch's own limit: questions of one call.
QUESTIONS = 500
# EC2 reports every five minutes, some minutes late.
PERIOD_SECONDS, LOOK_BACK = 300, timedelta(minutes=20)
AGENT, GPU_BUSY, GPU_MEMORY = "CWAgent", "nvidia_smi_utilization_gpu", "nvidia_smi_utilization_memory"
Question = tuple[str, str, str, str, tuple[tuple[str, str], ...]]


def notices_of(ec2: Any, region: str) -> Iterator[Notice]:
    for row in every(ec2, "describe_instance_status", "InstanceStatuses", IncludeAllInstances=True):
        for event in row.get("Events", ()):
            if not event.get("Description", "").startswith(OVER):
                yield event_notice(Ref(row["InstanceId"], region), event)
    for row in every(ec2, "describe_spot_instance_requests", "SpotInstanceRequests"):
        code = row.get("Status", {}).get("Code", "")
        if code.startswith("marked-for-") and row.get("InstanceId"):
            yield spot_notice(Ref(row["InstanceId"], region), row["SpotInstanceRequestId"], row["Status"])


def event_notice(ref: Ref, event: dict[str, Any]) -> Notice:
    starts = event.get("NotBefore")
    return Notice(
        ref=ref,
        kind=EVENTS.get(event["Code"], NoticeKind.OTHER),
        key=event.get("InstanceEventId") or f"{event['Code']}@{starts:%Y-%m-%dT%H:%M}",
        starts_at=starts,
        detail=event.get("Description", ""),
    )


def spot_notice(ref: Ref, request: str, status: dict[str, Any]) -> Notice:
    marked: datetime | None = status.get("UpdateTime")
    return Notice(
        ref=ref,
        kind=NoticeKind.INTERRUPTION,
        key=f"{request}:{status['Code']}",
        starts_at=marked + SPOT_NOTICE if marked else None,
        detail=status.get("Message", ""),
    )


def usage_of(cloudwatch: Any, region: str, ids: Sequence[str], now: datetime) -> Iterator[ProviderUsage]:
    """One for each machine that CloudWatch has figures of in the last 20 minutes. Each figure read is charged by Amazon."""
    questions = [*host_questions(ids), *gpu_questions(cloudwatch, set(ids))]
    answers: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
    newest: dict[str, datetime] = {}
    for (machine, metric, _statistic, _space, dimensions), at, value in ask(cloudwatch, questions, now):
        answers[machine][metric].append((dict(dimensions).get("index", ""), value))
        newest[machine] = max(newest.get(machine, at), at)
    for machine, figures in answers.items():
        yield usage(Ref(machine, region), newest[machine], figures)


def usage(ref: Ref, at: datetime, figures: dict[str, list[tuple[str, float]]]) -> ProviderUsage:
    def one(metric: str, divisor: int = 1) -> float | None:
        return figures[metric][0][1] / divisor if metric in figures else None

    def per_gpu(metric: str) -> tuple[float, ...]:
        ordered = sorted(figures.get(metric, ()), key=lambda pair: (len(pair[0]), pair[0]))
        return tuple(value for _index, value in ordered)

    return ProviderUsage(
        ref=ref,
        at=at,
        gpu_utilization_percent=per_gpu(GPU_BUSY),
        gpu_memory_percent=per_gpu(GPU_MEMORY),
        cpu_percent=one("CPUUtilization"),
        network_received_bytes_per_s=one("NetworkIn", PERIOD_SECONDS),
        network_sent_bytes_per_s=one("NetworkOut", PERIOD_SECONDS),
    )


def host_questions(ids: Sequence[str]) -> Iterator[Question]:
    for machine in ids:
        for metric, statistic in (("CPUUtilization", "Average"), ("NetworkIn", "Sum"), ("NetworkOut", "Sum")):
            yield machine, metric, statistic, "AWS/EC2", (("InstanceId", machine),)


def gpu_questions(cloudwatch: Any, ids: set[str]) -> Iterator[Question]:
    """Only CloudWatch's own agent on a machine measures GPUs; under which dimensions, its admin chose."""
    for metric in (GPU_BUSY, GPU_MEMORY):
        for row in every(cloudwatch, "list_metrics", "Metrics", Namespace=AGENT, MetricName=metric):
            dimensions = tuple((dimension["Name"], dimension["Value"]) for dimension in row["Dimensions"])
            machine = dict(dimensions).get("InstanceId", "")
            if machine in ids:
                yield machine, metric, "Average", AGENT, dimensions


def ask(cloudwatch: Any, questions: list[Question], now: datetime) -> Iterator[tuple[Question, datetime, float]]:
    """The newest figure of each question that has one."""
    for start in range(0, len(questions), QUESTIONS):
        chunk = questions[start : start + QUESTIONS]
        # The period that is running ends later.
        until = now + timedelta(seconds=PERIOD_SECONDS)
        span = {"StartTime": now - LOOK_BACK, "EndTime": until, "ScanBy": "TimestampDescending"}
        queries = [query(number, question) for number, question in enumerate(chunk)]
        seen: set[str] = set()
        results = every(cloudwatch, "get_metric_data", "MetricDataResults", MetricDataQueries=queries, **span)
        for result in results:
            if result["Timestamps"] and result["Id"] not in seen:
                seen.add(result["Id"])
                yield chunk[int(result["Id"][1:])], result["Timestamps"][0], result["Values"][0]


def query(number: int, question: Question) -> dict[str, Any]:
    _machine, metric, statistic, space, dimensions = question
    named = [{"Name": name, "Value": value} for name, value in dimensions]
    measured = {"Namespace": space, "MetricName": metric, "Dimensions": named}
    return {"Id": f"q{number}", "MetricStat": {"Metric": measured, "Period": PERIOD_SECONDS, "Stat": statistic}}
