"""Other tenants of a shared host, by the evidence that its readings give. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies

LOUD = 50


def look(evidence: Evidence) -> Iterator[Finding]:
    score = evidence.neighbour_score
    if score is not None and score >= LOUD:
        because = (Reason("neighbour_score", {"score": score}),)
        yield Finding("noisy_neighbour", Sure.POSSIBLE, because, remedies("other_machine", "exclusive_machine"))
