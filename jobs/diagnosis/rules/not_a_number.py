"""A loss that is no number any more, or runs away: every step after it is rent for nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median

from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import first, matches, numbers_of

SAYS_SO = re.compile(
    r"Current loss scale already at minimum|[Ll]oss is (?:nan|NaN|inf)|found NaN in|NaN or Inf (?:found|detected)|Minimum loss scale reached|"
    r"nan loss encountered|NaN loss|Detected nan|returned nan values in its \d+th output"
)
# FP16 finds its scale by overflows, in a row as it begins: a scale of one is the end of it.
AT_ONE = re.compile(r"OVERFLOW! .*(?:reducing to 1(?:\.0)?\s*$|loss scale: 1(?:\.0)?,)")
ENDS_AFTER = 5
BEFORE, TIMES = 20, 5.0
REMEDIES = ("lower_rate", "clip_gradients", "check_data", "resume_before")

Loss = tuple[float, int | None, float]


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is Kind.SERVING:
        return
    hit = first(evidence.lines, SAYS_SO)
    scales = [line for line, _found in matches(evidence.lines, AT_ONE)]
    if hit is not None or len(scales) >= ENDS_AFTER:
        said = [hit[0]] if hit else scales
        yield Finding("loss_nan", Sure.CERTAIN, (), remedies("bf16", *REMEDIES), numbers_of(said), since=said[0].at)
        return
    losses = [(at, point.step, point.loss) for at, point in evidence.points if point.loss is not None]
    yield from _nan(evidence, losses) or _diverged(losses)


def _nan(evidence: Evidence, losses: Sequence[Loss]) -> list[Finding]:
    """Some print a loss of zero instead, with a gradient that is none."""
    bad = next(((at, step) for at, step, loss in losses if not isfinite(loss)), None)
    if bad is None:
        gone = [
            (at, point.step)
            for at, point in evidence.points
            if point.grad_norm is not None and not isfinite(point.grad_norm) and not point.loss
        ]
        bad = gone[0] if len(gone) >= 3 else None
    if bad is None:
        return []
    at, step = bad
    return [
        Finding("loss_nan", Sure.CERTAIN, (Reason("loss_nan", _where(step)),), remedies("bf16", *REMEDIES), since=at)
    ]


def _diverged(losses: Sequence[Loss]) -> list[Finding]:
    """Towards a worse loss and staying there: one odd batch is none."""
    for place, (at, step, _loss) in enumerate(losses):
        before = [one for _at, _step, one in losses[max(0, place - BEFORE) : place]]
        after = [one for _at, _step, one in losses[place : place + 5]]
        enough = len(before) >= BEFORE // 2 and len(after) == 5
        if enough and median(before) > 0 and min(after) > TIMES * median(before):
            values = {**_where(step), "before": round(median(before), 3), "now": round(median(after), 3)}
            return [Finding("loss_diverged", Sure.LIKELY, (Reason("loss_up", values),), remedies(*REMEDIES), since=at)]
    return []


def _where(step: int | None) -> dict[str, int]:
    return {} if step is None else {"step": step}
