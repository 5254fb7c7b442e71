"""Driver, CUDA, wheels and libraries that do not fit: the planner's table of messages, looked for in the log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.texts import first
from planner.catalogue.symptoms import symptoms
from planner.compatibility.explain import explanation

# A rule of its own knows more of it.
ELSEWHERE = frozenset({"nccl-timeout", "torch-cpu-build", "nccl-shm"})
VERSIONS = "versions"
# Those of the table that are no question of versions.
CODES: Mapping[str, str] = {
    "nvml-mismatch": "host_driver",
    "fabric-802": "host_driver",
    "nvml-unknown": "gpu_left_container",
    "rtx40-p2p": "no_peer_access",
    "device-assert": "gpu_program",
}


def look(evidence: Evidence) -> Iterator[Finding]:
    """At most one finding of each layer: the first message is the cause, the rest follow from it."""
    layers: dict[str, Finding] = {}
    for symptom in symptoms().values():
        if symptom.id in ELSEWHERE or (hit := first(evidence.lines, symptom.pattern)) is None:
            continue
        line, said = hit
        cause = explanation(symptom, said[0], said.groupdict()).cause
        values = {"id": symptom.id, **{name: str(value) for name, value in cause.values.items()}}
        finding = Finding(
            CODES.get(symptom.id, VERSIONS),
            Sure.CERTAIN if symptom.confidence == "high" else Sure.LIKELY,
            (Reason("symptom", values),),
            (Remedy("symptom", values),),
            (line.number,),
            since=line.at,
        )
        known = layers.get(symptom.layer)
        if known is None or known.lines[0] > line.number:
            layers[symptom.layer] = finding
    yield from layers.values()
