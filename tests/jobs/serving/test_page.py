"""The server on the page of its job: figures, what it is, rows of the chart, and a restart with what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.teams.models import AuditEntry
from jobs.book.models import Attempt, JobKind
from jobs.serving.models import Server, ServerState
from jobs.serving.restart import restart_server
from tests.jobs.conftest import ACTOR, newest
from tests.jobs.serving.simulated import Scene, play, steady

pytestmark = pytest.mark.django_db
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


@pytest.fixture
def machine(make_instance):
    return make_instance(name="serve-01", gpus=1, managed=True, ssh=PLACE)


@pytest.fixture
def make(begin, machine):
    """make(engine="tgi") is a job that has served for an hour."""

    def served(scene: Scene | None = None, **serving: object):
        scene = scene or Scene(set(), hours=1.0)
        order = {"port": 8000, "engine": scene.engine, **serving}
        job = begin("serve", machine, name="chat", kind=JobKind.SERVING, serving=order)
        play(job, scene, until=timezone.now() - timedelta(seconds=30))
        job.refresh_from_db()
        return job

    return served


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def test_its_figures_stand_with_their_ages(browser, make):
    job = make(timeout_seconds=60)
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    for said in ("TTFT p95", "TPOT p95", "Queue", "KV cache", "Memory of the server", "clients wait 60 s", "org/tiny"):
        assert said in page, said
    assert "of 30 looks in a day" in page
    assert "read through SSH" in page
    assert "Its model is loaded, and it answers." in page


def test_what_an_engine_does_not_measure_is_not_shown(browser, make):
    page = browser.get(f"/t/acme/jobs/{make(Scene(set(), hours=1.0, engine='tgi')).pk}/").content.decode()
    assert "TTFT p95" not in page
    assert "TPOT p95" in page


def test_its_rows_stand_on_the_axis_of_the_run(browser, make):
    job = make(Scene(set(), hours=1.0, arrivals=steady(3.0)))
    figure = browser.get(f"/t/acme/jobs/{job.pk}/series/").json()
    rows = {row["name"]: row for row in figure["rows"]}
    assert {"requests", "ttft", "tpot", "queue", "kv_cache", "server_memory"} <= set(rows)
    known = [value for value in rows["requests"]["lines"][0]["y"] if value is not None]
    assert sum(known) / len(known) == pytest.approx(3.0, rel=0.1)
    assert rows["kv_cache"]["top"] == 100
    assert 19 < rows["server_memory"]["lines"][0]["y"][0] < 21
    assert len(figure["table"]["heads"]) == len(figure["table"]["lines"][0]) - 1


def test_one_that_is_down_says_why_in_words_and_hostile_ones_are_escaped(browser, make):
    job = make()
    Server.objects.update(
        state=ServerState.DOWN, code="status", detail="<b>500</b>", model_names=["<script>x</script>"]
    )
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert "It answers with an error" in page
    assert "&lt;b&gt;500&lt;/b&gt;" in page
    assert "<script>x" not in page


def test_a_job_that_serves_nothing_has_no_such_panel(browser, begin, machine):
    job = begin("train", machine)
    page = browser.get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert 'id="serving"' not in page
    assert browser.get(f"/t/acme/jobs/{job.pk}/restart/").status_code == 404


def test_a_restart_is_asked_for_with_what_it_costs(browser, make):
    job = make()
    dialog = browser.get(f"/t/acme/jobs/{job.pk}/restart/", headers={"HX-Request": "true"}).content.decode()
    assert "about 2 min without answers" in dialog
    assert "answers under way" in dialog
    assert newest(job).end_asked == ""
    browser.post(f"/t/acme/jobs/{job.pk}/restart/")
    assert newest(job).end_asked == "restart"
    assert job.events.get(kind="restart_asked").by.username == "alice"
    assert AuditEntry.objects.filter(action="job.restart").count() == 1
    assert "ends already" in browser.post(f"/t/acme/jobs/{job.pk}/restart/", follow=True).content.decode()


def test_a_viewer_and_another_team_restart_nothing(vera, charlie, as_user, make):
    job = make()
    assert as_user(vera).post(f"/t/acme/jobs/{job.pk}/restart/").status_code == 403
    assert as_user(charlie).post(f"/t/acme/jobs/{job.pk}/restart/").status_code == 404
    assert newest(job).end_asked == ""


def test_what_does_not_run_is_not_restarted(make):
    job = make()
    Attempt.objects.update(state="stopping")
    assert not restart_server(actor=ACTOR, job=job, now=timezone.now())
