"""Plan against measured: a bar for what was measured, a line for what was planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils import timezone

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.learning.keep import compared
from jobs.learning.measures import Compared, Measure
from jobs.learning.words import against_text, measure_text, missing_text, value_text
from jobs.pages.panels.panel import JobPanel

# So far from the plan it is said in colour.
WORSE = Decimal("1.25")
# What of a scale the larger of the two takes.
FULL = Decimal(92)


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """`width` and `tick` in percent, as CSS takes them; "" where there is nothing to draw."""

    name: str
    planned: str
    measured: str
    note: str
    is_worse: bool
    width: str = ""
    tick: str = ""


def measured_lines(found: Iterable[Compared]) -> list[MeasuredLine]:
    """Of what was planned."""
    return [_line(one) for one in found if one.predicted]


def _line(one: Compared) -> MeasuredLine:
    note = missing_text(one.missing) if one.ratio is None else against_text(one.ratio)
    width, tick = _scaled(one) if one.measured is not None and one.predicted else ("", "")
    return MeasuredLine(
        name=measure_text(one.measure),
        planned=value_text(one.measure, one.predicted, one.currency),
        measured=value_text(one.measure, one.measured, one.currency),
        note=note,
        is_worse=is_worse(one),
        width=width,
        tick=tick,
    )


def _scaled(one: Compared) -> tuple[str, str]:
    assert one.measured is not None
    assert one.predicted is not None
    whole = max(one.measured, one.predicted)
    return f"{FULL * one.measured / whole:.1f}", f"{FULL * one.predicted / whole:.1f}"


def is_worse(one: Compared) -> bool:
    if one.ratio is None:
        return False
    return one.ratio * WORSE < 1 if one.measure is Measure.TOKENS else one.ratio > WORSE


def context(_request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any] | None:
    """Nothing of a job that was made without a plan, or has not begun."""
    if not job.predicted or attempt.started_at is None:
        return None
    lines = measured_lines(compared(attempt, now=timezone.now()))
    return {"lines": lines} if lines else None


PANEL = JobPanel("measured", "jobs/panels/measured.html", context, place="side")
