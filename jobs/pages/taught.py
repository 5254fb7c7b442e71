"""What a team's runs taught: how far off plans were, on a page of its own and beside the planner's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.crypto import salted_hmac
from django.views.decorators.http import require_safe

from fleet.teams.access import TeamRequest
from jobs.learning.corrections import Correction
from jobs.learning.measures import Compared, Measure, family_of, number
from jobs.learning.models import Outcome
from jobs.learning.taught import Run, corrections_for, groups_of, has_learnt, newest_runs
from jobs.learning.words import (
    ALIKE,
    against_text,
    measure_text,
    missing_text,
    ratio_text,
    value_text,
)
from jobs.pages.panels.measured import is_worse
from jobs.plans.predicted import figures_of
from planner.web.asking import make_plan
from planner.web.inputs import PlanInput
from planner.web.query import data_of, query_of

RUNS_SHOWN = 50
# A plan takes a while to make, and is asked for as often as somebody types.
KEPT_SECONDS = 600
# Where each is a column; the price of an hour is the market's, not the run's.
COLUMNS = (Measure.MEMORY, Measure.STEP, Measure.TOKENS, Measure.HOURS, Measure.COST)


@dataclass(frozen=True, slots=True)
class CorrectionCell:
    name: str
    ratio: str
    spread: str
    count: int


@dataclass(frozen=True, slots=True)
class RunCell:
    """`note`: beside the plan, or why it cannot be compared."""

    name: str
    measured: str
    note: str
    is_worse: bool


@dataclass(frozen=True, slots=True)
class PlanLine:
    name: str
    planned: str
    corrected: str
    cell: CorrectionCell
    alike: str
    is_thin: bool


@require_safe
def runs_taught(request: TeamRequest) -> HttpResponse:
    runs = newest_runs(Outcome.objects.filter(team=request.team))
    context = {
        "nav": "jobs",
        "names": [measure_text(measure) for measure in COLUMNS],
        "groups": [
            (group, [correction_cell(measure, group.corrections.get(measure)) for measure in COLUMNS])
            for group in groups_of(runs)
        ],
        "runs": [(run.outcome, run_cells(run)) for run in runs[:RUNS_SHOWN]],
    }
    return render(request, "jobs/taught.html", context)


def correction_cell(measure: Measure, found: Correction | None) -> CorrectionCell:
    if found is None:
        return CorrectionCell(measure_text(measure), "", "", 0)
    low, high = ratio_text(found.low), ratio_text(found.high)
    spread = f"{low} – {high}" if low != high else ""
    return CorrectionCell(measure_text(measure), ratio_text(found.ratio), spread, found.count)


def run_cells(run: Run) -> list[RunCell]:
    lines = {line.measure: line for line in run.lines}
    return [run_cell(measure, lines.get(measure)) for measure in COLUMNS]


def run_cell(measure: Measure, line: Compared | None) -> RunCell:
    if line is None:
        return RunCell(measure_text(measure), "", "", is_worse=False)
    note = missing_text(line.missing) if line.ratio is None else against_text(line.ratio)
    return RunCell(measure_text(measure), value_text(measure, line.measured, line.currency), note, is_worse(line))


@require_safe
def plan_taught(request: TeamRequest) -> HttpResponse:
    """A part of the planner's page: its answer, corrected by the team's own runs. Empty where these say nothing of it."""
    figures = figures_asked(request.GET) if has_learnt(request.team) else None
    lines = plan_lines(request, figures) if figures else []
    return render(request, "jobs/taught_plan.html", {"lines": lines}) if lines else HttpResponse()


def figures_asked(query: QueryDict) -> Mapping[str, Any] | None:
    """What the planner says of the best option of this address; None where it says nothing."""
    asked = PlanInput(data=data_of(query))
    if not asked.is_valid():
        return None
    key = "jobs.figures." + salted_hmac("jobs.figures", query_of(asked.validated_data)).hexdigest()
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        best = make_plan(asked.validated_data).best
        found = figures_of(best) if best else {}
        cache.set(key, found, KEPT_SECONDS)
    return found or None


def plan_lines(request: TeamRequest, figures: Mapping[str, Any]) -> list[PlanLine]:
    found = corrections_for(
        request.team,
        work=figures["work"],
        method=figures["method"],
        family=family_of(figures["model"]),
        gpu=figures["gpu"],
    )
    lines = [plan_line(figures, one) for measure, one in found.items() if measure in COLUMNS]
    return [line for line in lines if line is not None]


def plan_line(figures: Mapping[str, Any], found: Correction) -> PlanLine | None:
    planned, cell = number(figures.get(found.measure.value)), correction_cell(found.measure, found)
    if planned is None:
        return None
    currency = str(figures.get("currency") or "")
    return PlanLine(
        name=cell.name,
        planned=value_text(found.measure, planned, currency),
        corrected=value_text(found.measure, found.corrected(planned), currency),
        cell=cell,
        alike=str(ALIKE[found.alike]),
        is_thin=found.is_thin,
    )
