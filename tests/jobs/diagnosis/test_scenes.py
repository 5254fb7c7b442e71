"""Known runs lead to the right finding and to no other; what was not read leads to none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.diagnosis.diagnose import diagnose
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
    assert [finding.code for finding in diagnose(training(lines=numbered, exit_code=1))] == ["oom_batch"]


def test_remedies_say_what_they_save() -> None:
    (finding,) = diagnose(SCENES["oom_batch"][0])
    first = finding.remedies[0]
    assert (first.code, dict(first.values), first.saves_bytes) == ("smaller_batch", {"from": 8, "to": 4}, 7 * GIB)


def test_the_surest_comes_first() -> None:
    found = diagnose(training(lines=out_of_memory("loss.backward()"), neighbour_score=80))
    assert [finding.sure for finding in found] == [Sure.CERTAIN, Sure.POSSIBLE]


def test_the_four_steps_are_told_in_their_order() -> None:
    (finding,) = diagnose(SCENES["communication"][0])
    assert [reason.code for reason in finding.because] == ["gpus_wait", "host_fine", "waves", "planned_communication"]
    (finding,) = diagnose(SCENES["starved_by_disk"][0])
    assert [reason.code for reason in finding.because] == ["gpus_wait", "iowait", "disk_busy", "as_planned"]


def test_a_leak_that_outlasts_its_load_is_surer() -> None:
    assert [finding.sure for finding in diagnose(SCENES["leak"][0])] == [Sure.POSSIBLE]
    assert [finding.sure for finding in diagnose(SCENES["leak_that_ends_with_the_load"][0])] == [Sure.LIKELY]
