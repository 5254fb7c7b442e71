"""Known runs lead to the right finding and to no other; what was not read leads to none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from jobs.diagnosis.diagnose import RULES, diagnose
from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Sure
from tests.jobs.diagnosis.scenes import GIB, SCENES, out_of_memory, training, with_noise


@pytest.mark.parametrize("name", SCENES)
def test_each_scene_has_its_finding(name: str) -> None:
    evidence, expected = SCENES[name]
    assert {finding.code for finding in diagnose(evidence)} == expected


@pytest.mark.parametrize("name", SCENES)
def test_missing_readings_change_no_finding(name: str) -> None:
    evidence, expected = SCENES[name]
    assert {finding.code for finding in diagnose(with_noise(evidence))} == expected


def test_precision_and_recall(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    right = wrong = missed = 0
    for evidence, expected in SCENES.values():
        found = {finding.code for finding in diagnose(evidence)}
        right, wrong, missed = (
            right + len(found & expected),
            wrong + len(found - expected),
            missed + len(expected - found),
        )
    precision, recall = right / (right + wrong), right / (right + missed)
    record_property("precision", precision)
    record_property("recall", recall)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(SCENES)} scenes: precision {precision:.3f}, recall {recall:.3f}\n")
    assert (precision, recall) == (1.0, 1.0)


@pytest.mark.parametrize("kind", Kind)
def test_nothing_read_is_nothing_found(kind: Kind) -> None:
    assert diagnose(Evidence(kind)) == []


def test_every_finding_says_why_and_what_to_do() -> None:
    for evidence, _expected in SCENES.values():
        for finding in diagnose(evidence):
            assert finding.remedies
            assert finding.because or finding.lines


def test_a_rank_that_ran_out_of_memory_explains_the_others_waiting() -> None:
    lines = (*out_of_memory("loss.backward()"), *SCENES["watchdog"][0].lines)
    numbered = tuple(replace(line, number=number) for number, line in enumerate(lines, start=1))
    assert [finding.code for finding in diagnose(training(lines=numbered, exit_code=1))] == ["oom_activations"]


def test_remedies_say_what_they_save() -> None:
    (finding,) = diagnose(SCENES["oom_activations"][0])
    first = finding.remedies[0]
    assert (first.code, dict(first.values), first.saves_bytes) == ("smaller_batch", {"from": 8.0, "to": 4.0}, 7 * GIB)


def test_the_surest_comes_first() -> None:
    found = diagnose(training(lines=out_of_memory("loss.backward()"), neighbour_score=80))
    assert [finding.sure for finding in found] == [Sure.CERTAIN, Sure.POSSIBLE]


def test_no_rule_is_left_without_a_scene() -> None:
    unused = [rule for rule in RULES if not any(list(rule(evidence)) for evidence, _expected in SCENES.values())]
    assert unused == []
