"""A loss that is no number any more, or runs away: every step after it is rent for nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import median

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure

BEFORE, TIMES = 20, 5.0
REMEDIES = ("lower_rate", "clip_gradients", "check_data", "resume_before")


def look(evidence: Evidence) -> Iterator[Finding]:
    losses = [(at, point.step, point.loss) for at, point in evidence.points if point.loss is not None]
    for place, (at, step, loss) in enumerate(losses):
        where = {} if step is None else {"step": step}
        before = [one for _at, _step, one in losses[max(0, place - BEFORE) : place] if isfinite(one)]
        if not isfinite(loss):
            yield Finding("loss_nan", Sure.CERTAIN, (Reason("loss_nan", where),), _of(("bf16", *REMEDIES)), since=at)
            return
        # Towards a worse loss and staying there: one odd batch is none.
        after = [one for _at, _step, one in losses[place : place + 5]]
        if (
            len(before) >= BEFORE // 2
            and len(after) == 5
            and median(before) > 0
            and min(after) > TIMES * median(before)
        ):
            values = {**where, "before": round(median(before), 3), "now": round(median(after), 3)}
            yield Finding("loss_diverged", Sure.LIKELY, (Reason("loss_up", values),), _of(REMEDIES), since=at)
            return


def _of(codes: tuple[str, ...]) -> tuple[Remedy, ...]:
    return tuple(Remedy(code) for code in codes)
