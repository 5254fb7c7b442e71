"""Load tests in the browser: begun from a form, followed, explained, called off; nobody else sees them."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from django.utils import timezone

from jobs.loadtest import run
from jobs.loadtest.manage import begin_load_test
from jobs.loadtest.models import LoadStage, LoadState, LoadTest
from jobs.loadtest.plan import LoadPlan, Loop
from jobs.loadtest.thread import Ended
from tests.jobs.conftest import ACTOR
from tests.jobs.loadtest.test_knee import server as stages_of

pytestmark = pytest.mark.django_db
PLAN = LoadPlan(Loop.CLOSED, (1, 2, 4, 8, 16), promise_ttft_seconds=0.5)
TYPED = {
    "loop": "closed",
    "levels": "1, 2，4",
    "stage_seconds": 10,
    "most_requests": 100,
    "prompt_tokens": 10,
    "answer_tokens": 10,
    "request_seconds": 30,
    "promise_ttft": 500,
    "key_name": "KEY",
}


@pytest.fixture
def job(serves, make_instance):
    machine = make_instance(gpus=1, managed=True, ssh=[{"host": "198.51.100.7", "port": 22, "user": "root"}])
    return serves(machine, secrets={"KEY": "sk-verysecret"})


@pytest.fixture
def page(job):
    return f"/t/acme/jobs/{job.pk}/load/"


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def ended(job, **peaks) -> LoadTest:
    """One whose server has eight places."""
    test = begin_load_test(actor=ACTOR, job=job, plan=PLAN, now=timezone.now())
    LoadTest.objects.update(state=LoadState.RUNNING, started_at=timezone.now())
    for number, figures in enumerate(stages_of(8, 2.0, PLAN.levels)):
        bad = {"failed": 3, "errors": {"timeout": 2, "<script>": 1}} if number == 4 else {}
        LoadStage.objects.create(
            test=test, number=number, ended_at=timezone.now(), figures=asdict(figures) | bad, peaks=dict(peaks)
        )
    run.end(test, PLAN, Ended(), timezone.now())
    return test


def test_one_is_begun_from_the_form(browser, job, page):
    assert browser.post(page, TYPED).headers["Location"] == page
    test = LoadTest.objects.get()
    assert (test.plan["levels"], test.plan["promise_ttft_seconds"], test.key_name) == ([1, 2, 4], 0.5, "KEY")
    assert test.asked_label == "alice"
    said = browser.get(page).content.decode()
    assert "It waits for its turn." in said
    assert "hx-get" in said
    assert "sk-verysecret" not in said
    assert "under way already" in browser.post(page, TYPED).content.decode()


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"levels": "1, two"}, "Write numbers with commas between them"),
        ({"levels": "4, 2"}, "Each stage has to load more"),
        ({"levels": "1, 100000"}, "at most 256"),
        ({"levels": "nan"}, "A stage loads more than nothing"),
        ({"levels": "1e400"}, "A stage loads more than nothing"),
        ({"levels": " ".join(str(number) for number in range(1, 99))}, "One to 12 stages."),
        ({"stage_seconds": "300", "levels": "1,2,3"}, "would last longer than 900 seconds"),
        ({"most_requests": "1000000"}, "20000"),
        ({"key_name": "HOME"}, "HOME"),
        ({"promise_ttft": "0"}, "1"),
    ],
)
def test_what_goes_beyond_the_bounds_is_said_and_nothing_typed_is_lost(browser, page, typed, says):
    answer = browser.post(page, TYPED | {"answer_tokens": 77} | typed)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert 'value="77"' in answer.content.decode()
    assert not LoadTest.objects.exists()


def test_its_result_says_where_the_knee_is_and_what_to_set(browser, job, page):
    ended(job, kv_cache_share=0.97, preempted=2, gpu_memory_share=0.86)
    for address in (page, f"/t/acme/jobs/{job.pk}/"):
        said = browser.get(address).content.decode()
        for text in (
            "The knee is at 8 requests at once",
            "--max-num-seqs",
            "--gpu-memory-utilization",
            "0.95",
            "The KV cache was 97% full, and 86% of the card are in use",
            "still has the first token within 0.5 s",
        ):
            assert text in said, text
    said = browser.get(page).content.decode()
    assert "not answered in time" in said
    assert "&lt;script&gt;" in said
    assert "<script>1" not in said


def test_one_that_failed_says_why(browser, job, page):
    test = begin_load_test(actor=ACTOR, job=job, plan=PLAN, now=timezone.now())
    LoadTest.objects.update(state=LoadState.RUNNING)
    run.end(test, PLAN, Ended("first_request", "key"), timezone.now())
    said = browser.get(page).content.decode()
    assert "already the first request was not answered: API key refused" in said
    assert "Load test without a result" in said


def test_it_is_called_off_once(browser, job, page):
    begin_load_test(actor=ACTOR, job=job, plan=PLAN, now=timezone.now())
    assert browser.get(f"{page}cancel/").status_code == 405
    for _again in range(2):
        assert browser.post(f"{page}cancel/").status_code == 302
    assert LoadTest.objects.get().state == LoadState.CANCELLED


def test_an_earlier_one_is_looked_at_and_nonsense_shows_the_newest(browser, job, page):
    first = ended(job)
    begin_load_test(actor=ACTOR, job=job, plan=PLAN, now=timezone.now())
    assert "The knee is at" in browser.get(f"{page}?test={first.pk}").content.decode()
    for query in ("test=x", "test=99999999999999999999", "test=0"):
        assert "Load test under way" in browser.get(f"{page}?{query}").content.decode()


def test_a_job_that_serves_nothing_has_none(browser, begin, make_instance):
    other = begin("python train.py", make_instance(managed=True, ssh=[{"host": "192.0.2.1", "user": "root"}]))
    assert browser.get(f"/t/acme/jobs/{other.pk}/load/").status_code == 404
    assert "Load test" not in browser.get(f"/t/acme/jobs/{other.pk}/").content.decode()


def test_viewers_look_and_others_do_not(as_user, vera, charlie, job, page):
    ended(job)
    viewer = as_user(vera)
    assert viewer.get(page).status_code == 200
    assert viewer.post(page, TYPED).status_code == 403
    assert viewer.post(f"{page}cancel/").status_code == 403
    other = as_user(charlie)
    assert other.get(page).status_code == 404
    assert other.get(f"/t/rival/jobs/{job.pk}/load/").status_code == 404
    assert other.post(f"/t/rival/jobs/{job.pk}/load/", TYPED).status_code == 404
