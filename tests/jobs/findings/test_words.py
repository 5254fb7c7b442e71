"""Whatever a rule can say has words, with its values in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.diagnosis import rules
from jobs.diagnosis.diagnose import FOLLOWS, diagnose
from jobs.findings.words import reason_text, remedy_text, title_of
from jobs.findings.words.reasons import REASONS
from jobs.findings.words.remedies import REMEDIES
from jobs.findings.words.titles import TITLES
from tests.jobs.diagnosis.scenes import SCENES

SOURCES = "\n".join(path.read_text() for path in Path(rules.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("name", [name for name, (_evidence, expected) in SCENES.items() if expected])
def test_what_is_found_is_said(name: str) -> None:
    for finding in diagnose(SCENES[name][0]):
        assert finding.code in TITLES
        assert title_of(finding.code) == str(TITLES[finding.code])
        for reason in finding.because:
            assert reason_text(reason.code, reason.values), reason
        for remedy in finding.remedies:
            text = remedy_text(remedy.code, remedy.values, remedy.saves_bytes)
            assert text, remedy
            assert "%(" not in text


def test_every_reason_and_remedy_that_a_rule_names_has_words() -> None:
    assert set(re.findall(r'Reason\(\s*"([a-z_]+)"', SOURCES)) <= set(REASONS)
    assert set(re.findall(r'Remedy\("([a-z_]+)"', SOURCES)) <= set(REMEDIES)


def test_what_follows_from_other_findings_is_one() -> None:
    assert set(FOLLOWS) <= set(TITLES)


def test_figures_are_said_as_people_read_them() -> None:
    assert reason_text("disk_used", {"share": 0.987}) == "The disk is 99 % full."
    assert "2.0\xa0GB" in reason_text("others", {"bytes": 2 * 2**30})
    assert remedy_text("shard_optimizer", {}, 30 * 2**30).endswith("Saves about 30.0\xa0GB of each GPU.")


def test_a_reason_without_its_values_says_nothing() -> None:
    assert reason_text("others", {}) == ""
    assert reason_text("no_such", {}) == ""
