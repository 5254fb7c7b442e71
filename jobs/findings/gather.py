"""Evidence of an attempt from rows: its logs, its points, and what was measured on its machines over its time. A constant number of queries,
and one for each machine's log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from fleet.inventory.provider_word.models import ProviderNotice
from fleet.providers.base import Market, NoticeKind
from fleet.quality.models import NeighbourEvidence
from fleet.telemetry.models import MachineEvent
from jobs.book.models import Attempt, JobState, Node
from jobs.diagnosis.evidence import Event, Evidence, Kind, Line, Predicted
from jobs.findings.readings import gpu_evidence, host_evidence
from jobs.logs.read import LogLine, last_lines
from jobs.metrics.models import JobPoint
from jobs.progress.point import Point
from jobs.serving.evidence import serving_evidence

LINES, POINTS = 3_000, 2_000
# A line that is longer says no more to any rule; of all of them together, what the rules read in a fraction of a second.
LONGEST_LINE, MOST_CHARACTERS = 2_000, 500_000
# A chart of no time is none.
SHORTEST = timedelta(minutes=1)
# Of a long run: the rules ask how it goes now.
LOOKS_BACK = timedelta(hours=6)
# Why an attempt ended that somebody ended.
STOPPED = frozenset({"asked", "deadline", "budget"})
_POINT_FIELDS = tuple(Point.__dataclass_fields__)


def gather(attempt: Attempt, *, now: datetime) -> Evidence:
    """Raises StoreError where readings cannot be read: a diagnosis on half of the evidence would be none."""
    nodes = list(attempt.nodes.select_related("instance__host_latest").order_by("rank"))
    machines = [node.instance_id for node in nodes]
    began = attempt.started_at or attempt.created_at
    until = max(attempt.ended_at or now, began + SHORTEST)
    since = max(began, until - LOOKS_BACK)
    return Evidence(
        kind=Kind(attempt.job.kind),
        command=attempt.job.command,
        lines=tuple(_lines(nodes)),
        points=_points(attempt),
        gpus=tuple(gpu_evidence(machines, since, until)),
        host=host_evidence(nodes, since, until),
        serving=serving_evidence(attempt, since=since, until=until),
        events=tuple(_events(machines, began, until)),
        predicted=_predicted(attempt.job.predicted),
        settings=_settings(attempt.job.predicted),
        started_at=began.timestamp(),
        now=now.timestamp(),
        exit_code=_exit_code(nodes),
        stopped=attempt.why in STOPPED,
        spot=any(node.instance.market == Market.SPOT for node in nodes) or _is_taken_back(machines, began),
        neighbour_score=_neighbours(machines, since, until),
        machine_ended_at=until.timestamp() if attempt.why == "machine_gone" else None,
    )


def _lines(nodes: Sequence[Node]) -> Iterator[Line]:
    """Of every machine, the first one's last: what one rank says must not hide what another did."""
    number, share = 0, max(1, len(nodes))
    for node in reversed(nodes):
        for line in _newest(last_lines(node, LINES // share), MOST_CHARACTERS // share):
            number = line.number if node.rank == 0 else number - 1
            yield Line(number, line.text[:LONGEST_LINE], rank=node.rank)


def _newest(lines: Sequence[LogLine], most: int) -> Sequence[LogLine]:
    """As many of the last as have so many characters together."""
    sizes = accumulate(min(len(line.text), LONGEST_LINE) for line in reversed(lines))
    kept = sum(1 for size in sizes if size <= most)
    return lines[len(lines) - kept :]


def _points(attempt: Attempt) -> tuple[tuple[float, Point], ...]:
    rows = JobPoint.objects.filter(attempt=attempt).order_by("-at", "-pk").values("at", *_POINT_FIELDS)[:POINTS]
    return tuple((row.pop("at").timestamp(), Point(**row)) for row in reversed(rows))


def _events(machines: Sequence[int], since: datetime, until: datetime) -> Iterator[Event]:
    rows = MachineEvent.objects.filter(instance__in=machines, at__gte=since, at__lt=until + timedelta(minutes=2))
    for at, kind, code, index in rows.order_by("at").values_list("at", "kind", "code", "gpu__index")[:500]:
        yield Event(at.timestamp(), kind, code, index)


def _is_taken_back(machines: Sequence[int], since: datetime) -> bool:
    """The provider had said so."""
    notices = ProviderNotice.objects.filter(
        instance__in=machines, kind=NoticeKind.INTERRUPTION, last_seen_at__gte=since
    )
    return notices.exists()


def _neighbours(machines: Sequence[int], since: datetime, until: datetime) -> int | None:
    rows = NeighbourEvidence.objects.filter(instance__in=machines, hour__gte=since - timedelta(hours=1), hour__lt=until)
    return max(rows.values_list("score", flat=True), default=None)


def _exit_code(nodes: Sequence[Node]) -> int | None:
    """Of the node that failed, else of all; None while one runs."""
    codes = [node.exit_code for node in nodes]
    failed = next((code for code in codes if code not in {None, 0}), None)
    if failed is not None:
        return failed
    return 0 if all(code == 0 for code in codes) and all(node.state == JobState.SUCCEEDED for node in nodes) else None


def _predicted(kept: Mapping[str, Any]) -> Predicted:
    names = tuple(name for name in Predicted.__dataclass_fields__ if name != "terms")
    return Predicted(terms=dict(kept.get("terms", {})), **{name: kept.get(name) for name in names})


def _settings(kept: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in kept.get("settings", {}).items() if isinstance(value, int | float)}
