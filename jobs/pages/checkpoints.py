"""The newest checkpoint that a run's log speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache

from jobs.book.models import Attempt, Job, JobKind, Node
from jobs.logs.models import LogChunk
from jobs.logs.read import LogLine
from jobs.logs.window import Wanted, lines_before
from jobs.metrics.models import JobPoint
from jobs.progress.checkpoints import read_checkpoint

# Every line of read_checkpoint's has it.
WORDS = "sav"
LINES_READ = 100
# A page asks every few seconds, and a long log without one takes time to look through.
KEPT_SECONDS = 45


@dataclass(frozen=True, slots=True)
class Saved:
    """`step`: of the run, None = not known. `at`: when the line was read from the machine."""

    step: int | None
    at: datetime

    @property
    def step_text(self) -> str:
        return "" if self.step is None else f"{self.step:,}"


def newest_checkpoint(job: Job, attempt: Attempt) -> Saved | None:
    """Of training alone: nothing else saves so."""
    if job.kind != JobKind.TRAINING:
        return None
    key = f"jobs:checkpoint:{attempt.pk}"
    kept: Saved | str | None = cache.get(key)
    if kept is None:
        kept = _look(attempt) or ""
        cache.set(key, kept, KEPT_SECONDS)
    return kept if isinstance(kept, Saved) else None


def _look(attempt: Attempt) -> Saved | None:
    node = attempt.nodes.order_by("rank").first()
    if node is None:
        return None
    for line in reversed(lines_before(node, Wanted(WORDS), most=LINES_READ).lines):
        if (read := read_checkpoint(line.text)) is not None:
            return Saved(read.step if read.step is not None else _step_at(attempt, line), _read_at(node, line))
    return None


def _step_at(attempt: Attempt, line: LogLine) -> int | None:
    points = JobPoint.objects.filter(attempt=attempt, source="log", line__lte=line.number, step__isnull=False)
    return points.order_by("-line").values_list("step", flat=True).first()


def _read_at(node: Node, line: LogLine) -> datetime:
    chunks = LogChunk.objects.filter(node=node, first_line__lte=line.number)
    return chunks.order_by("-first_line").values_list("read_at", flat=True)[0]
