"""A machine that ended before the run did: taken away, or off. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies


def look(evidence: Evidence) -> Iterator[Finding]:
    ended = evidence.machine_ended_at
    if ended is None or evidence.exit_code is not None:
        return
    if evidence.spot:
        what = remedies("resume", "checkpoint_often", "on_demand")
        yield Finding("preempted", Sure.CERTAIN, (Reason("machine_ended"),), what, since=ended)
    else:
        what = remedies("resume", "look_at_provider")
        yield Finding("machine_ended", Sure.CERTAIN, (Reason("machine_ended"),), what, since=ended)
