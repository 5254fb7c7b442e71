"""What people are told of a job: what, how bad it is, and when not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.findings.alerts import judge as judging
from jobs.findings.alerts.judge import (
    DEADLINE,
    FAILED,
    LEAK,
    LOST,
    SLOW,
    STALLED,
    TOLD,
    UNREACHABLE,
    JobNow,
    NodeNow,
    Stands,
    judge,
)
from jobs.findings.alerts.telling import ready_at
from jobs.findings.alerts.words import CAUSES
from jobs.findings.words.titles import TITLES

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AGO = NOW - timedelta(hours=1)
RUNNING = JobNow(name="run-1", kind="training", state="running", why="", since=AGO)


def told(job: JobNow, *, now: datetime = NOW) -> dict[str, str]:
    return {cause: one.severity for cause, one in judge(job, now).items()}


def found(*codes: str, sure: str = "likely", at: datetime = AGO, gone: datetime | None = None) -> JobNow:
    return replace(RUNNING, findings=tuple(Stands(code, sure, at, gone) for code in codes))


@pytest.mark.parametrize("state", ["queued", "preparing", "running", "stopping", "succeeded", "stopped"])
def test_a_job_that_goes_well_is_no_news(state):
    assert told(replace(RUNNING, state=state)) == {}


def test_a_job_that_failed_says_why_and_what_was_found():
    job = replace(found("oom_activations", sure="certain"), state="failed", why="exit", exit_code=1)
    (cause, one), *more = judge(job, NOW).items()
    assert (cause, one.severity, more, one.costs) == (FAILED, "warning", [], False)
    assert one.values == {"job": "run-1", "what": "failed", "why": "exit", "finding": "oom_activations", "code": 1}


def test_what_is_only_possible_does_not_explain_an_end():
    job = replace(found("host_memory", sure="possible"), state="failed", why="exit")
    assert judge(job, NOW)[FAILED].values["finding"] == ""


def test_a_server_that_ended_is_urgent():
    assert told(replace(RUNNING, kind="serving", state="failed", why="exit")) == {FAILED: "urgent"}
    assert told(replace(RUNNING, kind="serving", state="lost", why="machine_gone")) == {LOST: "urgent"}


def test_an_end_is_told_for_a_day_and_not_when_it_was_begun_again():
    job = replace(RUNNING, state="lost", why="lost")
    assert told(job) == {LOST: "warning"}
    assert told(job, now=AGO + timedelta(hours=24)) == {}
    assert told(replace(job, begun_again=True)) == {}


def test_findings_are_told_by_what_they_mean():
    assert told(found("stalled")) == {STALLED: "urgent"}
    assert told(found("no_steps", sure="possible")) == {STALLED: "note"}
    assert told(found("memory_leak")) == {LEAK: "warning"}
    assert told(found("stalled", "memory_leak")) == {STALLED: "urgent", LEAK: "warning"}


def test_of_one_cause_the_worst_is_told():
    job = replace(RUNNING, findings=(Stands("no_steps", "possible", AGO), Stands("stalled", "certain", AGO)))
    assert told(job) == {STALLED: "urgent"}


def test_what_only_costs_time_has_to_last():
    assert told(found("data_starved_disk", at=NOW - timedelta(minutes=14))) == {}
    assert told(found("data_starved_disk", at=NOW - timedelta(minutes=15))) == {SLOW: "note"}
    assert told(found("data_starved", sure="possible")) == {}


def test_a_finding_that_comes_and_goes_is_one_alert():
    assert told(found("stalled", gone=NOW - timedelta(minutes=4))) == {STALLED: "urgent"}
    assert told(found("stalled", gone=NOW - timedelta(minutes=5))) == {}


def test_findings_of_a_job_that_ended_are_part_of_its_end():
    assert told(replace(found("stalled"), state="stopped")) == {}


def test_what_machines_say_themselves_is_not_told_twice():
    assert told(found("gpu_fault", "throttled_heat", "noisy_neighbour", sure="certain")) == {}


def test_a_deadline_that_will_be_missed_is_told_at_once():
    job = replace(RUNNING, deadline_at=NOW + timedelta(hours=9), ready_at=NOW + timedelta(hours=10))
    assert told(job) == {DEADLINE: "warning"}
    assert told(replace(job, ready_at=NOW + timedelta(hours=8))) == {}


def test_without_a_pace_a_deadline_is_told_an_hour_ahead():
    assert told(replace(RUNNING, deadline_at=NOW + timedelta(minutes=61))) == {}
    assert told(replace(RUNNING, deadline_at=NOW + timedelta(minutes=60))) == {DEADLINE: "note"}
    assert told(replace(RUNNING, state="stopped", why="deadline", since=NOW)) == {DEADLINE: "warning"}
    assert told(replace(RUNNING, state="stopped", why="asked", since=NOW)) == {}


@pytest.mark.parametrize(
    ("error", "minutes", "expected"),
    [
        ("", 60, {}),
        ("unreachable", 9, {}),
        ("unreachable", 10, {UNREACHABLE: "warning"}),
        ("host_key_new", 0, {UNREACHABLE: "warning"}),
        ("host_key_changed", 0, {UNREACHABLE: "urgent"}),
    ],
)
def test_a_machine_that_is_not_reached(error, minutes, expected):
    job = replace(RUNNING, nodes=(NodeNow("train-01", error, NOW - timedelta(minutes=minutes)),))
    assert told(job) == expected


def test_when_a_run_will_be_ready():
    at = [NOW - timedelta(seconds=10 * number) for number in range(5)]
    assert ready_at([(moment, 100 - number, 400) for number, moment in enumerate(at)]) == NOW + timedelta(seconds=3_000)
    assert ready_at([(NOW, 3, 10)]) is None
    assert ready_at([(NOW, 3, 10), (AGO, 3, 10)]) is None
    assert ready_at([(NOW, 30, 10), (AGO, 3, 10)]) is None


def test_every_finding_that_is_told_has_a_title_and_every_cause_words():
    assert set(TOLD) <= set(TITLES)
    names = {value for name, value in vars(judging).items() if name.isupper() and str(value).startswith("job.")}
    assert names == {cause.name for cause in CAUSES}
