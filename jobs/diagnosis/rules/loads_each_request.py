"""A server that loads its model anew for requests instead of keeping it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import numbers_of

LOADS = re.compile(
    r"Loading (?:model |safetensors |pipeline )?(?:checkpoint|weights|safetensors|components)|Model loading took|load_model\(\) took|from_pretrained|"
    r"Loading model(?: from|\.\.\.)|[Mm]odel loaded in|llama_model_loader: loaded|loading model tensors|Starting to load model"
)
SERVED = re.compile(
    r"\"POST /(?!v1/models)[\w/.\-]*(?:completions|generate|predict|embeddings|invocations|infer|chat|images|api)[\w/.\-]*(?:\?\S*)? HTTP/[\d.]+\" 200"
    r"|Finished request|POST /\S+ 200 OK"
)
LEAST = 3
# A resident model gives one token in less; the first request may compile.
ONE_TOKEN_SECONDS = 5.0
SHARE = 0.5


def look(evidence: Evidence) -> Iterator[Finding]:
    """A load counts once between two answers, however many lines it prints; the first one, before any answer, is how it begins."""
    if evidence.kind is not Kind.SERVING:
        return
    if (slow := _one_token(evidence)) is not None:
        because = (Reason("slow_token", {"seconds": round(slow[0], 1), "times": slow[1]}),)
        yield Finding("loads_each_request", Sure.LIKELY, because, remedies("keep_resident", "engine_server"))
        return
    served, loads, is_new = 0, [], False
    for line in evidence.lines:
        if SERVED.search(line.text):
            served, is_new = served + 1, True
        elif is_new and LOADS.search(line.text):
            loads.append(line)
            is_new = False
    if len(loads) >= LEAST and len(loads) >= SHARE * served:
        because = (Reason("loads", {"loads": len(loads), "requests": served}),)
        yield Finding(
            "loads_each_request", Sure.LIKELY, because, remedies("keep_resident", "engine_server"), numbers_of(loads)
        )


def _one_token(evidence: Evidence) -> tuple[float, int] | None:
    """What every request for one token takes, where no load explains it, and how many did; None: they are quick, or nobody asked."""
    later = evidence.serving.short_answers[1:] if evidence.serving else ()
    return (min(later), len(later)) if later and min(later) >= ONE_TOKEN_SECONDS else None
