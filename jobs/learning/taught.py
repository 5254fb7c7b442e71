"""What a team's own runs taught: corrections of a plan, and the table of all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from fleet.teams.models import Team
from jobs.learning.corrections import Correction, Ratio, corrections, summed_up
from jobs.learning.measures import Compared, Measure
from jobs.learning.models import Outcome

# The newest: what software did two years ago says little.
RUNS = 500


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that are alike, and how far off plans of them were."""

    work: str
    method: str
    family: str
    gpu: str
    launcher: str
    jobs: int
    corrections: Mapping[Measure, Correction]


@dataclass(frozen=True, slots=True)
class Run:
    outcome: Outcome
    lines: Sequence[Compared]


def corrections_for(
    team: Team, *, work: str, method: str, family: str, gpu: str, launcher: str = ""
) -> dict[Measure, Correction]:
    """Of the team's jobs of this work, method and GPU. Without a launcher, of any."""
    alike = Outcome.objects.filter(team=team, work=work, method=method, gpu=gpu)
    ratios = [ratio for run in newest_runs(alike) for ratio in ratios_of(run)]
    return corrections(ratios, {"family": family, "launcher": launcher})


def has_learnt(team: Team) -> bool:
    return Outcome.objects.filter(team=team, figures__missing="", figures__predicted__gt=0).exists()


def newest_runs(outcomes: QuerySet[Outcome]) -> list[Run]:
    """One of each job: what was tried again counts once, as it was last."""
    rows = outcomes.select_related("attempt__job").prefetch_related("figures").order_by("-ended_at", "-pk")[:RUNS]
    found: dict[int, Outcome] = {}
    for outcome in rows:
        found.setdefault(outcome.attempt.job_id, outcome)
    return [Run(outcome, lines_of(outcome)) for outcome in found.values()]


def lines_of(outcome: Outcome) -> list[Compared]:
    by_measure = {figure.measure: figure for figure in outcome.figures.all()}
    return [by_measure[measure].compared(outcome.currency) for measure in Measure if measure in by_measure]


def ratios_of(run: Run) -> Iterable[Ratio]:
    features = {"family": run.outcome.family, "launcher": run.outcome.launcher}
    for line in run.lines:
        if line.ratio is not None:
            yield Ratio(line.measure, line.ratio, features)


def groups_of(runs: Sequence[Run]) -> list[Group]:
    """The largest first; runs without a plan are of none."""
    found: dict[tuple[str, str, str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        one = run.outcome
        if one.method and any(line.ratio is not None for line in run.lines):
            found[one.work, one.method, one.family, one.gpu, one.launcher].append(run)
    groups = [Group(*key, len(some), _corrections(some)) for key, some in found.items()]
    return sorted(groups, key=lambda group: (-group.jobs, group.family, group.method))


def _corrections(runs: Sequence[Run]) -> dict[Measure, Correction]:
    values: dict[Measure, list[Ratio]] = defaultdict(list)
    for run in runs:
        for ratio in ratios_of(run):
            values[ratio.measure].append(ratio)
    return {measure: summed_up(measure, [one.value for one in some]) for measure, some in values.items()}
