"""Whatever a rule can say has words, with its values in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.diagnosis import rules
from jobs.diagnosis.diagnose import FOLLOWS, diagnose
from jobs.diagnosis.rules import oom_serving, oom_training
from jobs.diagnosis.savings import SHARDS, SHRINKS
from jobs.findings.words import reason_text, remedy_text, title_of
from jobs.findings.words.reasons import REASONS
from jobs.findings.words.remedies import REMEDIES, WITH_SETTINGS
from jobs.findings.words.titles import TITLES
from tests.jobs.diagnosis.logs import LOGS
from tests.jobs.diagnosis.scenes import SCENES

TREES = [ast.parse(path.read_text()) for path in sorted(Path(rules.__file__).parent.glob("*.py"))]
FOUND = {name: evidence for name, (evidence, expected) in {**SCENES, **LOGS}.items() if expected}


def named_in(calls: set[str], *, first_only: bool = True) -> Iterator[str]:
    """Texts that these calls are given by name in the source of the rules."""
    for tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
                args = node.args[:1] if first_only else node.args
                yield from (arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_is_said(name: str) -> None:
    for finding in diagnose(FOUND[name]):
        assert title_of(finding.code) == str(TITLES[finding.code])
        for reason in finding.because:
            assert reason_text(reason.code, reason.values), reason
        for remedy in finding.remedies:
            text = remedy_text(remedy.code, remedy.values, remedy.saves_bytes)
            assert text, remedy
            assert "%(" not in text


def test_every_code_that_a_rule_names_has_words() -> None:
    kinds = {f"oom_{part}" for part in oom_training.REMEDIES} | {f"oom_serving_{kind}" for kind in oom_serving.REMEDIES}
    assert set(named_in({"Finding"})) | kinds <= set(TITLES)
    assert set(named_in({"Reason"})) <= set(REASONS)
    assert set(named_in({"remedies", "Remedy"}, first_only=False)) <= set(REMEDIES)
    lists = [*oom_training.REMEDIES.values(), *oom_serving.REMEDIES.values()]
    assert {code for codes in lists for code in codes} <= set(REMEDIES)


def test_no_words_are_left_of_what_no_rule_says() -> None:
    kinds = {f"oom_{part}" for part in oom_training.REMEDIES} | {f"oom_serving_{kind}" for kind in oom_serving.REMEDIES}
    sources = "".join(path.read_text() for path in Path(rules.__file__).parent.glob("*.py"))
    said = {code for code in TITLES if f'"{code}"' in sources} | kinds | {"data_starved_disk", "data_starved_cpu"}
    assert set(TITLES) - said - {"data_starved_memory"} == set()
    assert {code for code in REMEDIES if f'"{code}"' not in sources} == set()


def test_what_saves_memory_or_names_a_setting_is_a_remedy() -> None:
    assert set(SHRINKS) | set(SHARDS) | set(WITH_SETTINGS) <= set(REMEDIES)


def test_what_follows_from_other_findings_is_one() -> None:
    assert set(FOLLOWS) <= set(TITLES)


def test_figures_are_said_as_people_read_them() -> None:
    assert reason_text("disk_used", {"share": 0.987}) == "The disk is 99 % full."
    assert "2.0\xa0GB" in reason_text("others", {"bytes": 2 * 2**30})
    assert remedy_text("shard_optimizer", {}, 30 * 2**30).endswith("Saves about 30.0\xa0GB of each GPU.")


def test_a_setting_is_said_as_it_is_and_as_it_should_be() -> None:
    assert remedy_text("lower_memory_utilization", {"from": 0.97, "to": 0.92}) == (
        "Lower --gpu-memory-utilization from 0.97 to 0.92."
    )
    assert remedy_text("smaller_batch", {}) == str(REMEDIES["smaller_batch"])


def test_a_reason_without_its_values_says_nothing() -> None:
    assert reason_text("others", {}) == ""
    assert reason_text("no_such", {}) == ""
