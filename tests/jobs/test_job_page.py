"""What the page of a job asks for while it is looked at, and what is asked before it is stopped or run again."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.telemetry.partitions import ensure_partitions
from jobs.book.models import Attempt, Job, JobState, Node
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.models import JobPoint
from jobs.pages.again import next_name
from jobs.pages.panels import PANELS
from tests.jobs.conftest import newest

pytestmark = pytest.mark.django_db
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


@pytest.fixture
def machine(make_instance):
    ensure_partitions(now=timezone.now())
    return make_instance(gpus=1, ssh=PLACE, price_per_hour="8.00")


@pytest.fixture
def job(begin, machine):
    """A training that has run for an hour, with a point a minute and a checkpoint of step 30."""
    made = begin(
        "python train.py", machine, name="vision r2", predicted={"seconds_per_step": 20.0}, resume_arguments="--resume"
    )
    return run_for_an_hour(made)


def run_for_an_hour(made: Job, *, loss: float = 3.0) -> Job:
    began = timezone.now() - timedelta(hours=1)
    Job.objects.filter(pk=made.pk).update(state=JobState.RUNNING, started_at=began)
    Attempt.objects.filter(job=made).update(state=JobState.RUNNING, started_at=began)
    Node.objects.filter(attempt__job=made).update(state=JobState.RUNNING)
    attempt = newest(made)
    JobPoint.objects.bulk_create(
        JobPoint(
            attempt=attempt,
            at=began + timedelta(minutes=step),
            source="log",
            line=step,
            step=step,
            steps=600,
            loss=loss - step / 60,
        )
        for step in range(1, 60)
    )
    text = (
        "".join(f"step {step}/600\n" for step in range(1, 31))
        + "Saving model checkpoint to out/checkpoint-30\nERROR: \x1b[31mno\x1b[0m\n"
    )
    store_part(node=attempt.nodes.get(), part=Part(0, text.encode()), at=timezone.now())
    made.refresh_from_db()
    return made


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def lines_of(browser, job, query: str):
    return browser.get(f"/t/acme/jobs/{job.pk}/log/0/lines/?{query}").json()


def test_lines_are_asked_for_by_number_and_by_words(browser, job):
    answer = lines_of(browser, job, "after=30")
    assert [(line["number"], line["text"], line["warns"]) for line in answer["lines"]] == [
        (31, "Saving model checkpoint to out/checkpoint-30", False),
        (32, "ERROR: no", True),
    ]
    assert (answer["count"], answer["reached"], answer["more"], answer["ends"]) == (32, 32, False, False)
    assert [line["number"] for line in lines_of(browser, job, "before=3")["lines"]] == [1, 2]
    assert [line["number"] for line in lines_of(browser, job, "warnings=1")["lines"]] == [32]
    assert [line["number"] for line in lines_of(browser, job, "q=STEP+7/")["lines"]] == [7]
    assert "lines" not in lines_of(browser, job, "peek=1")
    assert len(lines_of(browser, job, "after=-1&before=x&attempt=9")["lines"]) == 32


def test_the_figures_of_a_run_lie_on_one_axis(browser, job):
    answer = browser.get(f"/t/acme/jobs/{job.pk}/series/?span=1h").json()
    rows = {row["name"]: row for row in answer["rows"]}
    assert list(rows) == ["loss", "seconds_per_step"]
    assert rows["seconds_per_step"]["lines"][0]["y"][0] == pytest.approx(60)
    assert (rows["seconds_per_step"]["plan"]["value"], rows["seconds_per_step"]["slow"]) == (20.0, True)
    assert not rows["loss"]["zero"]
    assert answer["end"] - answer["start"] == pytest.approx(3600, abs=30)
    assert len(answer["table"]["lines"]) == 12


def test_losses_that_are_no_number_leave_a_gap_and_readable_json(browser, job):
    JobPoint.objects.filter(step__gte=30).update(loss=float("nan"))
    answer = browser.get(f"/t/acme/jobs/{job.pk}/series/")
    assert b"NaN" not in answer.content
    loss = next(row for row in answer.json()["rows"] if row["name"] == "loss")
    assert len(loss["lines"][0]["y"]) == 29


def test_the_top_says_where_it_stands_beside_the_plan(browser, job):
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    for said in (
        "Training on",
        "Step 59",
        "of 600",
        "plan 20 s",
        "last checkpoint: step 30,",
        "falls 17 per 1,000 steps",
        "Ends",
        "in 8 h 5",
    ):
        assert said in page, said


def test_stopping_says_first_what_it_loses(browser, job):
    page = browser.get(f"/t/acme/jobs/{job.pk}/stop/").content.decode()
    for said in (
        "29 steps since the checkpoint of step 30",
        "$8.00/h go on",
        "Stop: loses 29 steps",
        "starts it with --resume",
    ):
        assert said in page, said
    dialog = browser.get(f"/t/acme/jobs/{job.pk}/stop/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in dialog
    assert "data-close" in dialog


def test_two_runs_are_laid_beside_each_other(browser, job, begin, make_instance):
    other = run_for_an_hour(
        begin("python train.py --lr 2", make_instance(name="train-02", ssh=PLACE), name="vision r1"), loss=6.0
    )
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert f"?with={other.pk}" in page
    page = browser.get(f"/t/acme/jobs/{job.pk}/?with={other.pk}").content.decode()
    for said in ("Beside vision r1", "Loss at step 59", "train-02", "python train.py --lr 2", "Stop comparing"):
        assert said in page, said
    rows = browser.get(f"/t/acme/jobs/{job.pk}/series/?with={other.pk}").json()["rows"]
    mine, theirs = rows[0]["lines"]
    assert (theirs["name"], theirs["other"]) == ("vision r1", True)
    assert theirs["x"][0] == pytest.approx(mine["x"][0], abs=10)
    assert theirs["y"][0] - mine["y"][0] == pytest.approx(3, abs=0.1)


def test_nobody_compares_with_a_job_of_another_team(browser, job, rival):
    foreign = Job.objects.create(team=rival, name="theirs", command="true")
    page = browser.get(f"/t/acme/jobs/{job.pk}/?with={foreign.pk}")
    assert page.status_code == 200
    assert "theirs" not in page.content.decode()


def test_it_is_run_again_as_it_was_once_somebody_said_so(browser, job, machine):
    page = browser.get(f"/t/acme/jobs/{job.pk}/again/").content.decode()
    assert "vision r3" in page
    assert "vision r2 still runs there" in page
    assert not Job.objects.filter(rerun_of=job).exists()
    answer = browser.post(f"/t/acme/jobs/{job.pk}/again/")
    made = Job.objects.get(rerun_of=job)
    assert answer.headers["Location"] == f"/t/acme/jobs/{made.pk}/"
    assert (made.name, made.command, made.created_label) == ("vision r3", "python train.py", "alice")


def test_what_cannot_be_run_again_leads_to_the_form(browser, job, machine):
    machine.state = "stopped"
    machine.save()
    answer = browser.post(f"/t/acme/jobs/{job.pk}/again/")
    assert answer.headers["Location"] == f"/t/acme/jobs/new/?like={job.pk}"
    assert not Job.objects.filter(rerun_of=job).exists()


def test_names_count_on():
    assert (next_name("vision"), next_name("vision r9"), next_name("r2")) == ("vision r2", "vision r10", "r2 r2")
    assert len(next_name("x" * 120)) == 120


def test_the_list_says_how_far_and_what_it_costs(browser, job):
    page = browser.get("/t/acme/jobs/").content.decode()
    for said in ("vision r2", "--w:9.8", "/ 600", "Cost so far"):
        assert said in page, said


def test_viewers_are_not_asked_and_others_see_nothing(as_user, vera, charlie, job):
    viewer, other = as_user(vera), as_user(charlie)
    assert 'id="stop"' not in viewer.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    for path in ("stop/", "again/"):
        assert viewer.get(f"/t/acme/jobs/{job.pk}/{path}").status_code == 403
    for path in ("again/", "series/", "log/0/lines/"):
        assert other.get(f"/t/rival/jobs/{job.pk}/{path}").status_code == 404


def test_every_panel_has_its_place_once(browser, job):
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    parts = re.findall(r'id="part-(\w+)"', page)
    assert len(parts) == len(set(parts))
    assert {"charts", "machines", "log", "facts", "steps"} <= set(parts)
    assert len({panel.name for panel in PANELS}) == len(PANELS)
