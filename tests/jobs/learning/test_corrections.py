"""What a team's runs say of the next one: the median over jobs that are alike, with how many and how far apart."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.teams.models import Team
from jobs.learning.corrections import Ratio, corrections
from jobs.learning.keep import learn
from jobs.learning.measures import Measure
from jobs.learning.models import Outcome, OutcomeFigure
from jobs.learning.taught import corrections_for, groups_of, has_learnt, newest_runs
from tests.jobs.learning.conftest import NOW, PREDICTED, told

LLAMA = {"family": "llama-3.1", "launcher": "torchrun"}
LIKE = {"work": "training", "method": "lora", "gpu": "h100-sxm-80", "family": "meta-llama-3.1"}


def ratios(*values: str, measure: Measure = Measure.MEMORY, **features: str) -> list[Ratio]:
    return [Ratio(measure, Decimal(value), LLAMA | features) for value in values]


def test_a_median_that_one_broken_run_does_not_move():
    (found,) = corrections(ratios("1.1", "1.2", "1.0", "9.0", "1.1"), LLAMA).values()
    assert (found.ratio, found.low, found.high, found.count) == (Decimal("1.1"), Decimal("1.1"), Decimal("1.2"), 5)
    assert found.corrected(Decimal(40)) == 44


def test_the_nearest_runs_count_where_there_are_enough():
    known = [*ratios("1.1", "1.1", "1.1"), *ratios("2", "2", "2", "2", launcher="deepspeed")]
    assert corrections(known, LLAMA)[Measure.MEMORY].ratio == Decimal("1.1")
    found = corrections(known[1:], LLAMA)[Measure.MEMORY]
    assert (found.ratio, found.alike) == (Decimal(2), ("family",))


def test_a_few_runs_are_said_to_be_few():
    found = corrections(ratios("1.3", family="qwen2.5"), LLAMA)[Measure.MEMORY]
    assert (found.ratio, found.low, found.high, found.count, found.is_thin, found.alike) == (
        Decimal("1.3"),
        Decimal("1.3"),
        Decimal("1.3"),
        1,
        True,
        ("launcher",),
    )


def test_each_measure_has_its_own():
    known = [*ratios("1.1", "1.1", "1.1"), *ratios("3", measure=Measure.STEP)]
    assert {measure: one.count for measure, one in corrections(known, LLAMA).items()} == {
        Measure.MEMORY: 3,
        Measure.STEP: 1,
    }
    assert corrections([], LLAMA) == {}


def test_any_launcher_counts_where_none_is_asked_for():
    known = [*ratios("1.1"), *ratios("1.2", launcher="deepspeed"), *ratios("1.3", launcher="megatron")]
    assert corrections(known, {"family": "llama-3.1", "launcher": ""})[Measure.MEMORY].count == 3


@pytest.mark.django_db
def test_corrections_of_a_team_are_of_its_own_runs(acme, rival, ran):
    attempt = ran()
    told(attempt)
    learn(now=NOW)
    found = corrections_for(acme, **LIKE)
    assert (found[Measure.STEP].ratio, found[Measure.HOURS].ratio) == (Decimal("1.5"), Decimal(2))
    assert (has_learnt(acme), has_learnt(rival), corrections_for(rival, **LIKE)) == (True, False, {})
    assert corrections_for(acme, **{**LIKE, "method": "full"}) == {}


@pytest.mark.django_db
def test_a_job_that_was_tried_again_counts_once(acme, ran):
    first, second = ran(state="failed"), ran()
    second.job_id, second.number = first.job_id, 2
    second.save()
    for attempt, ratio in ((first, 5), (second, 1)):
        _outcome(acme, attempt, ratio)
    (run,) = newest_runs(Outcome.objects.all())
    assert run.outcome.attempt == second
    assert corrections_for(acme, **LIKE)[Measure.MEMORY].ratio == 1


def _outcome(team: Team, attempt, ratio: int) -> None:
    outcome = Outcome.objects.create(
        attempt=attempt, team=team, ended_at=attempt.ended_at, measured_at=NOW, launcher="torchrun", **LIKE
    )
    OutcomeFigure.objects.create(outcome=outcome, measure="memory_bytes", predicted=1, measured=ratio)


@pytest.mark.django_db
def test_groups_are_runs_that_are_alike(ran, make_instance):
    for number, method in enumerate(("lora", "lora", "full")):
        machine = make_instance(name=f"m{number}", managed=True, ssh=[{"host": "198.51.100.9", "port": 22}])
        told(ran(predicted={**PREDICTED, "method": method}, on=machine))
    told(ran(predicted={}))
    learn(now=NOW)
    groups = groups_of(newest_runs(Outcome.objects.all()))
    assert [(group.method, group.jobs, group.corrections[Measure.STEP].ratio) for group in groups] == [
        ("lora", 2, Decimal("1.5")),
        ("full", 1, Decimal("1.5")),
    ]
