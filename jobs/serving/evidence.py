"""What a server's readings and looks at it say, as the rules of diagnosis need it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fleet.telemetry.serving.models import ServingLatest, ServingSample
from fleet.telemetry.serving.series import serving_series
from jobs.book.models import Attempt
from jobs.book.serving import Serving
from jobs.diagnosis.evidence import Series, ServingEvidence
from jobs.serving.endpoint import endpoint_of, server_of
from jobs.serving.models import Probe, Server

# Of the evidence, by fields of serving_series.
FIELDS = {
    "running": "requests_running",
    "waiting": "requests_waiting",
    "kv_cache_ratio": "kv_cache_ratio",
    "requests": "requests_per_second",
    "failed": "requests_failed_per_second",
    "ttft_p95_seconds": "ttft_seconds_p95",
    "tpot_p95_seconds": "tpot_seconds_p95",
    "e2e_p95_seconds": "e2e_seconds_p95",
}
# What a chart could show of the time that is looked at.
READINGS = 240


def serving_evidence(attempt: Attempt, *, since: datetime, until: datetime) -> ServingEvidence | None:
    """None: the job serves nothing, or nobody has looked at its server yet."""
    serving, server = Serving.of(attempt.job.serving), server_of(attempt)
    if serving is None or server is None:
        return None
    return ServingEvidence(
        process_memory_bytes=_memory(server, since, until),
        timeout_seconds=serving.timeout_seconds,
        short_answers=tuple(server.short_answers),
        **_readings(server, serving, attempt, since, until),
    )


def _readings(
    server: Server, serving: Serving, attempt: Attempt, since: datetime, until: datetime
) -> dict[str, Series]:
    endpoint = endpoint_of(server, serving, attempt)
    if endpoint is None:
        return {}
    measured = serving_series(
        endpoint_ids=[endpoint.pk],
        fields=[*FIELDS.values(), "e2e_seconds"],
        since=since,
        until=until,
        max_points=READINGS,
    )
    figures = measured.values[endpoint.pk]
    read = {name: _known(measured.starts, figures[field]) for name, field in FIELDS.items()}
    usual = _usual(endpoint, since, until) or _known(measured.starts, figures["e2e_seconds"])
    return {**read, "e2e_p50_seconds": usual}


def _usual(endpoint: ServingLatest, since: datetime, until: datetime) -> Series:
    """What half of the requests took. Sums over time have no medians, so that it is taken of the readings themselves."""
    rows = ServingSample.objects.filter(endpoint=endpoint, sampled_at__gte=since, sampled_at__lt=until)
    known = rows.filter(e2e_seconds_p50__isnull=False).order_by("sampled_at")
    pairs = known.values_list("sampled_at", "e2e_seconds_p50")
    return Series(tuple((at.timestamp(), value) for at, value in pairs if value is not None))


def _known(starts: Sequence[datetime], figures: Sequence[float | None]) -> Series:
    """Without its gaps: what was not read is no reading."""
    pairs = zip(starts, figures, strict=True)
    return Series(tuple((at.timestamp(), float(figure)) for at, figure in pairs if figure is not None))


def _memory(server: Server, since: datetime, until: datetime) -> Series:
    """The least of each stretch: what load takes for a while is not what stays."""
    rows = list(
        Probe.objects.filter(server=server, at__gte=since, at__lt=until, memory_bytes__isnull=False)
        .order_by("at")
        .values_list("at", "memory_bytes")
    )
    every = max(1, -(-len(rows) // READINGS))
    parts = [rows[begin : begin + every] for begin in range(0, len(rows), every)]
    return Series(tuple((part[0][0].timestamp(), float(min(size or 0 for _at, size in part))) for part in parts))
