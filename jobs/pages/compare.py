"""Two runs side by side: what they came to, and in what their orders differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from statistics import fmean, median
from typing import Any

from django.db.models import Case, IntegerField, Max, Value, When
from django.utils.translation import gettext as _

from fleet.formats import bytes_text, duration_text
from jobs.book.models import Attempt, Job
from jobs.book.words import why_text
from jobs.metrics.models import JobPoint
from jobs.pages.charts.figure import WHOLE, window_of
from jobs.pages.charts.told import Told, loss_text, told_by
from jobs.pages.money import cost_text
from jobs.pages.summary import large_text, seconds_text
from jobs.spending.cost import cost_of

CANDIDATES = 8
# Losses around a step, so that one that jumps decides nothing.
LOSSES_READ = 20
LEAST_PERCENT = 0.05


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """`difference`: of the other to this run, in words; "" = none can be said. `is_text`: of an order, shown in full width."""

    name: str
    mine: str
    theirs: str
    difference: str = ""
    is_text: bool = False


def candidates(job: Job) -> list[Job]:
    """Runs that it can be laid beside: the one that it repeats first, then of its project, the newest first."""
    near = Case(
        When(pk=job.rerun_of_id, then=Value(0)),
        When(project=job.project_id, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    rows = Job.objects.filter(team=job.team_id, kind=job.kind, started_at__isnull=False).exclude(pk=job.pk)
    return list(rows.annotate(near=near).order_by("near", "-created_at")[:CANDIDATES])


def compared_rows(job: Job, attempt: Attempt, other: Attempt, now: datetime) -> list[ComparedRow]:
    return [*_outcome(job, attempt, other, now), *_measures(attempt, other, now), *_orders(job, other.job)]


def _outcome(job: Job, attempt: Attempt, other: Attempt, now: datetime) -> Iterator[ComparedRow]:
    yield ComparedRow(_("State"), _state(job), _state(other.job))
    yield ComparedRow(_("Lasted"), _lasted(attempt, now), _lasted(other, now))
    mine, theirs = (cost_text(cost_of(one, now)) for one in (attempt, other))
    if mine or theirs:
        yield ComparedRow(_("Cost so far"), mine, theirs)
    yield ComparedRow(_("Machines"), _machines(attempt), _machines(other))
    if _gpus(attempt) or _gpus(other):
        yield ComparedRow(_("GPUs"), _gpus(attempt), _gpus(other))


def _state(job: Job) -> str:
    return f"{job.get_state_display()}: {why_text(job.why)}" if job.why else str(job.get_state_display())


def _lasted(attempt: Attempt, now: datetime) -> str:
    began = attempt.started_at
    return duration_text(((attempt.ended_at or now) - began).total_seconds()) if began else ""


def _machines(attempt: Attempt) -> str:
    return ", ".join(attempt.nodes.order_by("rank").values_list("instance__name", flat=True))


def _gpus(attempt: Attempt) -> str:
    rows = attempt.nodes.order_by("rank").values_list("instance__gpu_count", "instance__gpu_model")
    return ", ".join(f"{count} × {model}" for count, model in rows if count and model)


def _measures(attempt: Attempt, other: Attempt, now: datetime) -> Iterator[ComparedRow]:
    told = [told_by(one, window_of(one, WHOLE, now)) for one in (attempt, other)]
    mine, theirs = (one.of("step")[-1][1] if one.of("step") else None for one in told)
    if mine is not None or theirs is not None:
        yield ComparedRow(_("Step reached"), _count(mine), _count(theirs))
    if mine is not None and theirs is not None:
        common = int(min(mine, theirs))
        name = _("Loss at step %(step)s") % {"step": f"{common:,}"}
        yield from _pair(name, (_loss_at(attempt, common), _loss_at(other, common)), loss_text)
    for key, name, text in (
        ("seconds_per_step", _("Step time, median"), lambda value: f"{seconds_text(value)} s"),
        ("tokens_per_second", _("Tokens per second, median"), large_text),
        ("tokens_per_gpu", _("Tokens per second of a GPU, median"), large_text),
    ):
        yield from _pair(name, (_median(told[0], key), _median(told[1], key)), text)
    yield from _pair(_("GPU memory, peak"), (_peak(attempt), _peak(other)), bytes_text)


def _count(step: float | None) -> str:
    return "" if step is None else f"{step:,.0f}"


def _peak(attempt: Attempt) -> int | None:
    peak: int | None = JobPoint.objects.filter(attempt=attempt).aggregate(peak=Max("memory_bytes"))["peak"]
    return peak


def _median(told: Told, key: str) -> float | None:
    return median(value for _at, value in told.of(key)) if told.of(key) else None


def _loss_at(attempt: Attempt, step: int) -> float | None:
    rows = JobPoint.objects.filter(attempt=attempt, loss__isnull=False, step__lte=step).order_by("-step", "-at")
    known = [loss for loss in rows.values_list("loss", flat=True)[:LOSSES_READ] if loss is not None and isfinite(loss)]
    return fmean(known) if known else None


def _pair(name: str, values: tuple[float | None, float | None], text: Callable[[float], str]) -> Iterator[ComparedRow]:
    mine, theirs = ("" if value is None else text(value) for value in values)
    if mine or theirs:
        yield ComparedRow(name, mine, theirs, _difference(*values))


def _difference(mine: float | None, theirs: float | None) -> str:
    if not mine or theirs is None:
        return ""
    percent = 100 * (theirs / mine - 1)
    return f"{percent:+.1f} %" if abs(percent) >= LEAST_PERCENT else ""


def _orders(job: Job, other: Job) -> Iterator[ComparedRow]:
    """Only what differs."""
    names: tuple[tuple[str, Callable[[Job], Any]], ...] = (
        (_("Command"), lambda one: one.command),
        (_("Repository"), lambda one: f"{one.repository} {one.revision}".strip()),
        (_("Environment"), lambda one: _pairs(one, (job, other))),
        (_("Processes on each machine"), lambda one: one.processes_per_node or ""),
        (_("Launcher"), lambda one: one.launcher),
        (_("Data"), lambda one: one.data_path),
        (_("Checkpoints"), lambda one: one.checkpoint_path),
    )
    for name, read in names:
        mine, theirs = str(read(job)), str(read(other))
        if mine != theirs:
            yield ComparedRow(name, mine, theirs, is_text=True)


def _pairs(one: Job, both: tuple[Job, Job]) -> str:
    """Those of its variables that the other has not, or has otherwise."""
    first, second = (job.environment for job in both)
    differ = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    return "\n".join(f"{name}={one.environment[name]}" for name in differ if name in one.environment)
