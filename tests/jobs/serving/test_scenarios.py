"""What the diagnosis finds of servers over hours, and what it does not: a table with expected findings, its precision and recall."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.book.models import JobKind
from jobs.findings.keep import examine
from tests.jobs.serving.simulated import SCENES, Scene, play

pytestmark = pytest.mark.django_db
# By scenario, of the tests before the last.
FOUND: dict[str, set[str]] = {}
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


def found_in(scene: Scene, begin, machine) -> set[str]:
    now = timezone.now()
    serving = {"port": 8000, "engine": scene.engine, "timeout_seconds": scene.timeout_seconds}
    job = begin("serve", machine, name="chat", kind=JobKind.SERVING, serving=serving)
    attempt = play(job, scene, until=now - timedelta(seconds=30))
    return {row.code for row in examine(attempt, now=now)}


def table(found: dict[str, set[str]]) -> tuple[str, float, float]:
    """The table, precision and recall."""
    counts = Counter[str]()
    lines = [f"{'scenario':44}{'expected':22}found"]
    for name, codes in found.items():
        expected = SCENES[name].expected
        counts["right"] += len(codes & expected)
        counts["wrong"] += len(codes - expected)
        counts["missed"] += len(expected - codes)
        lines.append(f"{name:44}{', '.join(sorted(expected)) or '–':22}{', '.join(sorted(codes)) or '–'}")
    precision = counts["right"] / max(1, counts["right"] + counts["wrong"])
    recall = counts["right"] / max(1, counts["right"] + counts["missed"])
    lines.append(f"{len(found)} scenarios: precision {precision:.2f}, recall {recall:.2f}")
    return "\n".join(lines), precision, recall


@pytest.mark.parametrize("name", SCENES)
def test_a_scenario_leads_to_what_it_is(name, begin, make_instance):
    FOUND[name] = found_in(SCENES[name], begin, make_instance(name="serve-01", gpus=1, managed=True, ssh=PLACE))
    assert FOUND[name] == SCENES[name].expected


def test_precision_and_recall_over_all_of_them(capsys):
    if len(FOUND) < len(SCENES):
        pytest.skip("not all scenarios were run in this process")
    text, precision, recall = table(FOUND)
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")
    assert (precision, recall) == (1.0, 1.0)
