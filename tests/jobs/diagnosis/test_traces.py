"""Servers of a real fleet over a day, as they were measured: nothing is found on them that is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.traces import Row, read_trace
from jobs.diagnosis.diagnose import diagnose
from jobs.diagnosis.evidence import Evidence, GpuEvidence, Kind, Series, ServingEvidence
from jobs.progress.point import Point
from tests.services import ROOT

TRACE = ROOT.parent / "shared" / "traces" / "genai_serving_gpu.csv.gz"
# As the diagnosis looks back over a long run.
WINDOW, STRIDE = 6 * 3600.0, 3 * 3600.0

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is not there")


def windows(rows: list[Row]) -> Iterator[list[Row]]:
    begin = rows[0].t
    while begin < rows[-1].t:
        part = [row for row in rows if begin <= row.t < begin + WINDOW]
        if len(part) > 60:
            yield part
        begin += STRIDE


def evidence_of(rows: list[Row], kind: Kind) -> Evidence:
    """How busy the GPU was stands for the load: requests were not recorded."""
    busy = Series(tuple((row.t, row.utilization_percent) for row in rows if row.utilization_percent is not None))
    memory = Series(tuple((row.t, float(row.memory_used_bytes)) for row in rows if row.memory_used_bytes is not None))
    return Evidence(
        kind=kind,
        gpus=(GpuEvidence(0, utilization_percent=busy, memory_used_bytes=memory, memory_total_bytes=80e9),),
        serving=ServingEvidence(running=busy) if kind is Kind.SERVING else None,
        points=() if kind is Kind.SERVING else ((rows[0].t, Point(step=1)),),
        started_at=rows[0].t,
        now=rows[-1].t,
    )


@needs_trace
def test_a_real_fleet_of_servers_has_no_finding() -> None:
    looked_at, found = 0, []
    for pod, rows in read_trace(TRACE).pods.items():
        for part in windows(rows):
            looked_at += 1
            found += [(pod, part[0].t, one.code, one.sure) for one in diagnose(evidence_of(part, Kind.SERVING))]
    assert looked_at > 300
    assert found == []


@needs_trace
def test_what_is_no_training_is_not_called_slow_while_it_runs_nothing() -> None:
    """A notebook or a command on the same readings: nobody said what it should do."""
    for rows in read_trace(TRACE).pods.values():
        for part in windows(rows):
            assert diagnose(evidence_of(part, Kind.COMMAND)) == []
