"""How often the diagnosis is right, over scenes of readings and logs of public reports: printed, and held at what it reaches."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import pytest

from jobs.diagnosis.diagnose import RULES, diagnose
from tests.jobs.diagnosis.logs import LOGS
from tests.jobs.diagnosis.scenes import SCENES

CASES = {**SCENES, **LOGS}


def test_precision_and_recall(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for evidence, expected in CASES.values():
        found = {finding.code for finding in diagnose(evidence)}
        right.update(found & expected)
        wrong.update(found - expected)
        missed.update(expected - found)
    precision = right.total() / (right.total() + wrong.total())
    recall = right.total() / (right.total() + missed.total())
    record_property("precision", precision)
    record_property("recall", recall)
    with capsys.disabled():
        sys.stdout.write("\n".join(table(right, wrong, missed)))
        healthy = sum(not expected for _evidence, expected in CASES.values())
        said = f"{len(CASES)} cases, {healthy} of them healthy: precision {precision:.3f}, recall {recall:.3f}"
        sys.stdout.write(f"\n{said}\n")
    assert (precision, recall) == (1.0, 1.0)


def table(right: Counter[str], wrong: Counter[str], missed: Counter[str]) -> list[str]:
    lines = ["", f"{'finding':<26}{'cases':>6}{'found':>6}{'wrong':>6}{'missed':>7}"]
    for code in sorted({*right, *wrong, *missed}):
        cases = right[code] + missed[code]
        lines.append(f"{code:<26}{cases:>6}{right[code]:>6}{wrong[code]:>6}{missed[code]:>7}")
    return lines


def test_no_rule_is_left_without_a_case() -> None:
    unused = [
        rule.__module__ for rule in RULES if not any(list(rule(evidence)) for evidence, _expected in CASES.values())
    ]
    assert unused == []
