"""What a run came to beside its plan, and for each figure that is missing, why."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache

from fleet.costs.spend.models import ExchangeRate
from fleet.telemetry.store.base import StoreError
from jobs.book.manage import add_attempt
from jobs.book.models import Attempt, JobState
from jobs.learning import keep
from jobs.learning.keep import compared, learn
from jobs.learning.measures import Compared, Measure, Missing, family_of, number
from jobs.learning.measuring import measured_of
from jobs.learning.models import Outcome
from jobs.metrics.models import JobPoint
from tests.jobs.conftest import ACTOR
from tests.jobs.learning.conftest import BEGAN, GIB, NOW, PREDICTED, told, used_memory

pytestmark = pytest.mark.django_db


def lines(attempt: Attempt) -> dict[Measure, Compared]:
    return {line.measure: line for line in compared(attempt, now=NOW)}


def test_every_figure_beside_its_plan(ran, machine):
    attempt = ran()
    used_memory(machine, 38, 44)
    told(attempt)
    assert learn(now=NOW) == 1
    found = lines(attempt)
    assert {measure: line.ratio for measure, line in found.items()} == {
        Measure.MEMORY: Decimal("1.1"),
        Measure.STEP: Decimal("1.5"),
        # 4 sequences of 4,096 tokens every 3 seconds.
        Measure.TOKENS: Decimal("5461.3333333333") / Decimal(8192),
        Measure.HOURS: Decimal(2),
        Measure.COST: Decimal(2),
        Measure.COST_PER_HOUR: Decimal(1),
    }
    assert found[Measure.MEMORY].measured == 44 * GIB
    assert found[Measure.COST].currency == "USD"
    outcome = Outcome.objects.get()
    assert (outcome.family, outcome.method, outcome.gpu, outcome.launcher, outcome.gpus) == (
        "meta-llama-3.1",
        "lora",
        "h100-sxm-80",
        "torchrun",
        2,
    )


def test_it_is_written_once_and_only_when_readings_have_come(ran):
    attempt = ran()
    ended = BEGAN + timedelta(hours=1)
    assert learn(now=ended + timedelta(minutes=1)) == 0
    assert (learn(now=NOW), learn(now=NOW)) == (1, 0)
    assert Outcome.objects.get().attempt == attempt


def test_what_the_run_says_of_tokens_counts_before_what_is_reckoned(ran):
    attempt = ran()
    told(attempt, tokens_per_gpu=4000.0)
    assert lines(attempt)[Measure.TOKENS].measured == 8000
    cache.clear()
    JobPoint.objects.update(tokens_per_second=7000.0)
    assert lines(attempt)[Measure.TOKENS].measured == 7000


def test_memory_that_only_the_run_told_is_better_than_none(ran):
    attempt = ran()
    told(attempt, memory_bytes=41 * GIB)
    assert lines(attempt)[Measure.MEMORY].measured == 41 * GIB


def test_memory_with_half_of_the_time_unseen_says_so(ran, machine):
    attempt = ran()
    used_memory(machine, 38, 44, minutes=range(20))
    line = lines(attempt)[Measure.MEMORY]
    assert line.measured == 44 * GIB
    assert (line.missing, line.ratio) == (Missing.GAPS, None)


def test_what_nobody_measured_or_told_says_so(ran):
    found = lines(ran())
    assert found[Measure.MEMORY].missing == Missing.NOT_MEASURED
    assert found[Measure.STEP].missing == found[Measure.TOKENS].missing == Missing.NOT_TOLD


def test_a_few_steps_tell_too_little(ran):
    attempt = ran()
    told(attempt, 3)
    assert lines(attempt)[Measure.STEP].missing == Missing.TOO_SHORT


def test_hours_and_cost_count_for_the_whole_run_only(ran):
    failed = ran(state="failed")
    told(failed)
    assert lines(failed)[Measure.HOURS].missing == lines(failed)[Measure.COST].missing == Missing.NOT_FINISHED
    assert lines(failed)[Measure.STEP].ratio == Decimal("1.5")


def test_a_run_of_another_length_says_so(ran):
    shorter = ran()
    told(shorter, steps=400)
    assert lines(shorter)[Measure.HOURS].missing == Missing.OTHER_LENGTH
    assert lines(shorter)[Measure.COST_PER_HOUR].ratio == 1


def test_with_another_job_on_the_machine_nothing_is_compared(ran, machine):
    attempt = ran()
    used_memory(machine, 38, 44)
    told(attempt)
    ran()
    found = lines(attempt)
    assert {line.missing for line in found.values()} == {Missing.SHARED}
    assert found[Measure.MEMORY].measured == 44 * GIB


def test_money_is_compared_in_the_plans_currency(acme, ran):
    attempt = ran(predicted={**PREDICTED, "currency": "EUR"})
    assert lines(attempt)[Measure.COST].missing == Missing.NO_RATE
    cache.clear()
    ExchangeRate.objects.create(team=acme, currency="USD", into="EUR", day=date(2026, 1, 1), rate="0.5", source="x")
    line = lines(attempt)[Measure.COST]
    assert line.measured == 2
    assert line.currency == "EUR"


def test_a_price_that_nobody_told_is_missing(ran, make_instance):
    machine = make_instance(name="b", managed=True, ssh=[{"host": "198.51.100.8", "port": 22}])
    assert lines(ran(on=machine))[Measure.COST].missing == Missing.NO_PRICE


def test_without_a_plan_there_is_nothing_to_compare(ran, machine):
    attempt = ran(predicted={})
    used_memory(machine, 38, 44)
    found = lines(attempt)
    assert {line.missing for line in found.values()} == {Missing.NOT_PLANNED}
    assert found[Measure.MEMORY].measured == 44 * GIB


def test_what_never_ran_says_so(ran):
    attempt = ran()
    attempt.started_at, attempt.state = None, JobState.STOPPED
    attempt.save()
    assert learn(now=NOW) == 1
    assert {line.missing for line in lines(attempt).values()} == {Missing.NOT_RUN}


def test_a_run_that_goes_on_is_compared_as_it_stands(ran):
    attempt = ran()
    attempt.ended_at, attempt.state = None, JobState.RUNNING
    attempt.save()
    told(attempt)
    found = lines(attempt)
    assert (found[Measure.STEP].ratio, found[Measure.HOURS].missing) == (Decimal("1.5"), Missing.RUNS_YET)
    assert learn(now=NOW) == 0


@pytest.mark.parametrize("error", [StoreError("away"), ValueError("broken")])
def test_one_that_cannot_be_measured_keeps_no_other_from_it(ran, monkeypatch, error, make_instance):
    first = ran()
    second = ran(on=make_instance(name="b", managed=True, ssh=[{"host": "198.51.100.8", "port": 22}]))

    def broken(attempt, *, now):
        if attempt == first:
            raise error
        return measured_of(attempt, now=now)

    monkeypatch.setattr(keep, "measured_of", broken)
    assert learn(now=NOW) == 1
    assert Outcome.objects.get().attempt == second


def test_a_page_goes_without_where_readings_cannot_be_read(ran, monkeypatch):
    def away(_attempt, *, now):
        raise StoreError("away")

    monkeypatch.setattr(keep, "measured_of", away)
    assert compared(ran(), now=NOW) == []


def test_a_later_attempt_did_what_the_one_before_had_left(ran):
    first = ran(state="failed")
    machines = [node.instance for node in first.nodes.all()]
    second = add_attempt(actor=ACTOR, job=first.job, machines=machines, now=NOW)
    Attempt.objects.filter(pk=second.pk).update(
        created_at=BEGAN + timedelta(hours=1),
        started_at=BEGAN + timedelta(hours=1),
        ended_at=BEGAN + timedelta(hours=1.5),
        state="succeeded",
    )
    second.refresh_from_db()
    for step in (500, 750, 1000):
        JobPoint.objects.create(attempt=second, at=NOW, source="log", step=step, steps=1000)
    assert lines(second)[Measure.HOURS].missing == Missing.OTHER_LENGTH


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama-2"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral"),
        ("facebook/opt-1.3b", "opt"),
        ("gpt2-xl", "gpt2-xl"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("7B", "7b"),
        ("", ""),
    ],
)
def test_a_family_is_the_name_up_to_the_size(model, family):
    assert family_of(model) == family


@pytest.mark.parametrize("value", [None, True, "much", float("nan"), float("inf"), "1e400", [1], {}])
def test_what_is_no_figure_is_not_known(value):
    assert number(value) is None
