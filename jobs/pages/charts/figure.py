"""All rows of a job's chart over a span of its run."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from fleet.telemetry.store.base import StoreError
from jobs.book.models import Attempt, Job
from jobs.findings.models import JobFinding
from jobs.findings.words import title_of
from jobs.pages.charts.measured import measured_rows
from jobs.pages.charts.rows import Mark, Row, Window, table_of
from jobs.pages.charts.served import served_rows
from jobs.pages.charts.told import told_by, told_rows

logger = logging.getLogger(__name__)
SPANS = {"1h": timedelta(hours=1), "3h": timedelta(hours=3), "12h": timedelta(hours=12)}
WHOLE = "run"
# A chart of no time is none.
SHORTEST = timedelta(minutes=2)
POINTS = 400
DATES_FROM = timedelta(hours=26)


@dataclass(frozen=True, slots=True)
class Figure:
    """`note`: why something is missing, "" = nothing is."""

    window: Window
    rows: list[Row]
    marks: list[Mark]
    note: str = ""

    @property
    def clock_style(self) -> str:
        return "m-d H:i" if self.window.end - self.window.start > DATES_FROM else "H:i"

    @property
    def table(self) -> tuple[list[str], list[tuple[datetime, list[str]]]]:
        return table_of(self.rows, self.window)

    def as_json(self) -> dict[str, Any]:
        heads, lines = self.table
        style = "%m-%d %H:%M" if self.clock_style != "H:i" else "%H:%M"
        return {
            "start": self.window.start.timestamp(),
            "end": self.window.end.timestamp(),
            "rows": [row.as_json() for row in self.rows],
            "marks": [{"at": mark.at, "text": mark.text} for mark in self.marks],
            "note": self.note,
            "table": {
                "heads": heads,
                "lines": [[timezone.localtime(at).strftime(style), *cells] for at, cells in lines],
            },
        }


def began_of(attempt: Attempt) -> datetime:
    return attempt.started_at or attempt.created_at


def window_of(attempt: Attempt, span: str, now: datetime) -> Window:
    began = began_of(attempt)
    end = max(attempt.ended_at or now, began + SHORTEST)
    start = max(began, end - SPANS[span]) if span in SPANS else began
    return Window(start, end, max(1.0, (end - start).total_seconds() / POINTS))


def figure_of(job: Job, attempt: Attempt, *, span: str, now: datetime, other: Attempt | None = None) -> Figure:
    """`other`: a run that is laid over this one, from their beginnings on."""
    window = window_of(attempt, span, now)
    theirs = None
    if other is not None:
        theirs = (other.job.name, told_by(other, window, began_of(attempt) - began_of(other)))
    rows = list(told_rows(told_by(attempt, window), job.predicted, theirs))
    note = ""
    try:
        rows += served_rows(attempt, window)
        rows += measured_rows(list(attempt.nodes.order_by("rank").values_list("instance_id", flat=True)), window)
    except StoreError:
        logger.exception("What was measured beside job %d cannot be read", job.pk)
        note = _("The store of readings cannot be reached just now: only what the run told is shown.")
    return Figure(window, rows, _marks(attempt, window), note)


def _marks(attempt: Attempt, window: Window) -> list[Mark]:
    found = JobFinding.objects.filter(attempt=attempt, gone_at=None, since__gt=window.start, since__lt=window.end)
    return [Mark(row.since.timestamp(), title_of(row.code)) for row in found.order_by("since") if row.since]
