"""What belongs to a job, over the API: lines of its log, its points, its findings and every change of it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.findings.keep import examine
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.store import store_lines
from tests.jobs.api.conftest import JOBS
from tests.jobs.conftest import newest
from tests.jobs.findings.test_keep import OUT_OF_MEMORY

pytestmark = pytest.mark.django_db
PARTS = ("log", "events", "points", "findings")


@pytest.fixture
def job(begin, machine):
    return begin("python train.py", machine)


@pytest.fixture
def part(script, job):
    def ask(name: str, client=script, **asked: object):
        return client.get(f"{JOBS}{job.pk}/{name}/", asked)

    return ask


def keep(job, text: str) -> None:
    node = newest(job).nodes.get()
    store_part(node=node, part=Part(node.log_offset, text.encode()), at=timezone.now())


def numbers(answer) -> list[int]:
    return [line["number"] for line in answer.json()["lines"]]


def test_lines_are_read_from_the_end_or_from_a_number_on(job, part):
    for begin in (1, 101):
        keep(job, "".join(f"line {number}\n" for number in range(begin, begin + 100)))
    last = part("log", limit=3)
    assert numbers(last) == [198, 199, 200]
    assert (last.json()["next_from"], last.json()["more"], last.json()["line_count"]) == (201, False, 200)
    first = part("log", limit=3, **{"from": 99}).json()
    assert [line["text"] for line in first["lines"]] == ["line 99", "line 100", "line 101"]
    assert (first["next_from"], first["more"]) == (102, True)
    behind = part("log", **{"from": 201}).json()
    assert (behind["lines"], behind["next_from"], behind["more"]) == ([], 201, False)


def test_lines_are_found_by_words_and_gone_on_with(job, part):
    keep(job, "".join(f"{'Warning' if number % 10 == 0 else 'step'} {number}\n" for number in range(1, 101)))
    first = part("log", q="warning", limit=4)
    assert numbers(first) == [10, 20, 30, 40]
    rest = part("log", q="warning", **{"from": first.json()["next_from"]})
    assert numbers(rest) == [50, 60, 70, 80, 90, 100]
    assert rest.json()["more"] is False


def test_an_answer_holds_no_more_than_a_megabyte_of_text(job, part):
    for _ in range(20):
        keep(job, "".join(f"{'x' * 999}\n" for _ in range(100)))
    answer = part("log", limit=2000, **{"from": 1})
    assert len(answer.content) < 1_200_000
    assert numbers(part("log", limit=1, **{"from": answer.json()["next_from"]}))[0] == numbers(answer)[-1] + 1


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"rank": 9}, "rank"),
        ({"rank": "x"}, "rank"),
        ({"attempt": 2}, "attempt"),
        ({"from": 0}, "from"),
        ({"limit": 2001}, "limit"),
        ({"q": "a\0"}, "q"),
        ({"q": "x" * 201}, "q"),
        ({"follow": "true"}, "follow"),
        ({"folow": "true"}, "folow"),
    ],
)
def test_what_cannot_be_asked_is_named(part, asked, field):
    answer = part("log", **asked)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_points_are_read_in_time_and_what_is_no_number_is_named(job, part):
    attempt = newest(job)
    store_lines(attempt=attempt, lines=[(1, "step 10/200 loss 2.1"), (2, "step 20/200 loss nan")], at=timezone.now())
    rows = part("points").json()["results"]
    assert [(row["step"], row["loss"], row["not_finite"], row["attempt"]) for row in rows] == [
        (10, 2.1, [], 1),
        (20, None, ["loss"], 1),
    ]
    assert part("points", attempt=2).json()["results"] == []
    assert len(part("points", limit=1, ordering="-at").json()["results"]) == 1


def test_findings_say_what_why_and_what_to_do(job, part):
    keep(job, OUT_OF_MEMORY)
    examine(newest(job), now=timezone.now())
    row = part("findings", stands="true").json()["results"][0]
    assert row["title"]
    assert row["because"][0]["says"]
    assert row["remedies"][0]["says"]
    assert part("findings", stands="false").json()["results"] == []


def test_events_say_every_change(job, part, post):
    post(f"{job.pk}/stop/")
    rows = part("events").json()["results"]
    assert [(row["kind"], row["says"]) for row in rows] == [("queued", "queued"), ("stop_asked", "stop asked for")]


@pytest.mark.parametrize("name", PARTS)
def test_another_team_finds_no_part(part, name, rival, vera, as_token, as_user):
    assert part(name, client=as_token(rival)).status_code == 404
    assert part(name, client=as_user(vera)).status_code == 200
