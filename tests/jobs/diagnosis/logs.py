"""Logs as evidence: the shapes of public reports with our own words and numbers, and what each has to be found as.

A file of texts/ holds many: "=== name", then "key: value" lines (expect: codes or nothing; kind; like: a public report of that shape, where planner/data/symptoms.csv names one; exit; serving: figures),
then "---" and the log. Progress is read from the lines as the runner reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jobs.diagnosis.evidence import Evidence, GpuEvidence, Kind, Line
from jobs.progress.point import Point
from jobs.progress.read import read_line
from tests.jobs.diagnosis.scenes import endpoint, series

FOLDER = Path(__file__).with_name("texts")
FIGURES = {
    "running": "running",
    "waiting": "waiting",
    "cache": "kv_cache_ratio",
    "ttft": "ttft_p95_seconds",
    "p50": "e2e_p50_seconds",
    "p95": "e2e_p95_seconds",
}


def read_all() -> Iterator[tuple[str, tuple[Evidence, set[str]]]]:
    for path in sorted(FOLDER.glob("*.txt")):
        for part in path.read_text().split("\n=== ")[1:]:
            head, _rule, body = part.partition("\n---\n")
            name, *pairs = head.split("\n")
            keys = dict(pair.split(":", 1) for pair in pairs)
            yield f"{path.stem}/{name}", (evidence_of(keys, body), set(keys["expect"].split()))


def evidence_of(keys: Mapping[str, str], body: str) -> Evidence:
    texts = body.rstrip("\n").split("\n")
    given = dict(pair.split("=") for pair in keys.get("serving", "").split())
    code = keys.get("exit", "1").strip()
    return Evidence(
        kind=Kind(keys.get("kind", "training").strip()),
        command=keys.get("command", "").strip(),
        lines=tuple(Line(number, text) for number, text in enumerate(texts, start=1)),
        points=tuple(points_of(texts)),
        gpus=(GpuEvidence(0), GpuEvidence(1)),
        serving=endpoint(**{FIGURES[name]: series(float(value)) for name, value in given.items()}) if given else None,
        exit_code=None if code == "none" else int(code),
    )


def points_of(texts: list[str]) -> Iterator[tuple[float, Point]]:
    for number, text in enumerate(texts, start=1):
        if (point := read_line(text)) is not None:
            yield float(number), point


LOGS = dict(read_all())
