"""What runs taught, on the job's page, on a page of its own, and beside the planner's answer."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.core.cache import cache
from django.http import QueryDict

from jobs.book.models import Job
from jobs.learning.keep import learn
from jobs.learning.measures import Compared, Measure, Missing
from jobs.learning.models import OutcomeFigure
from jobs.pages import taught
from jobs.pages.panels.measured import measured_lines
from jobs.pages.taught import figures_asked
from tests.jobs.learning.conftest import NOW, PREDICTED, told, used_memory

pytestmark = pytest.mark.django_db
# A plan that fits on the GPU that it names.
PLAN = "method=lora&gpu=h100-sxm-80"


@pytest.fixture
def learnt(ran, machine) -> Job:
    """A run that took 44 of 40 GiB, three seconds a step instead of two, and an hour instead of half of one."""
    attempt = ran()
    used_memory(machine, 38, 44)
    told(attempt)
    learn(now=NOW)
    job: Job = attempt.job
    return job


def test_a_job_shows_its_plan_beside_what_was_measured(learnt, alice, as_user):
    page = as_user(alice).get(f"/t/acme/jobs/{learnt.pk}/").content.decode()
    assert "Plan against measured" in page
    for said in ("plan 40.0 GiB", "44.0 GiB", "10 % more than planned", "50 % more than planned", "2.0 times the plan"):
        assert said in page, said


def test_a_job_without_a_plan_has_no_such_panel(ran, alice, as_user):
    job = ran(predicted={}).job
    assert "Plan against measured" not in as_user(alice).get(f"/t/acme/jobs/{job.pk}/").content.decode()


def test_bars_share_a_scale_with_their_plan():
    found = [
        Compared(Measure.STEP, Decimal(2), Decimal(4)),
        Compared(Measure.TOKENS, Decimal(100), Decimal(50)),
        Compared(Measure.COST, Decimal(5), None, Missing.NO_PRICE, "USD"),
        Compared(Measure.HOURS, None, Decimal(3), Missing.NOT_PLANNED),
    ]
    slow, few, unpriced = measured_lines(found)
    assert (slow.width, slow.tick, slow.is_worse, slow.note) == ("92.0", "46.0", True, "2.0 times the plan")
    assert (few.width, few.tick, few.is_worse, few.note) == ("46.0", "92.0", True, "50 % less than planned")
    assert (unpriced.width, unpriced.measured, unpriced.note) == (
        "",
        "",
        "some of its time is at a price that nobody told",
    )


def test_the_page_has_every_group_and_every_job(learnt, vera, as_user):
    page = as_user(vera).get("/t/acme/jobs/taught/").content.decode()
    for said in ("meta-llama-3.1", "lora", "h100-sxm-80", "1.10 ×", "1.50 ×", "2.00 ×", "run-1", "1 job"):
        assert said in page, said


def test_nobody_else_sees_it(learnt, charlie, as_user):
    browser = as_user(charlie)
    assert browser.get("/t/acme/jobs/taught/").status_code == 404
    own = browser.get("/t/rival/jobs/taught/").content.decode()
    assert "Nothing to compare yet" in own
    assert "run-1" not in own
    assert browser.get(f"/t/rival/jobs/taught/plan/?{PLAN}").content == b""


def test_the_planner_asks_for_what_runs_say_of_its_plan(acme, vera, as_user):
    page = as_user(vera).get(f"/t/acme/planner/?{PLAN}", follow=True).content.decode()
    assert 'hx-get="/t/acme/jobs/taught/plan/?' in page


def test_the_planners_answer_is_corrected_by_runs_that_are_alike(learnt, vera, as_user):
    planned = figures_asked(QueryDict(PLAN))
    assert planned is not None
    page = as_user(vera).get(f"/t/acme/jobs/taught/plan/?{PLAN}").content.decode()
    assert "What your own runs say" in page
    memory = Decimal(planned["memory_bytes"]) * Decimal("1.1")
    assert f"{memory / 1024**3:.1f} GiB" in page
    assert page.count("1.50 ×") == 1
    assert page.count("1 job · few") == 5


def test_it_says_nothing_of_what_no_run_was_like(learnt, vera, as_user):
    browser = as_user(vera)
    for plan in ("method=full&gpu=h100-sxm-80", "method=lora&gpu=a100-sxm-80", "method=nonsense", "work=serving"):
        assert browser.get(f"/t/acme/jobs/taught/plan/?{plan}").content == b"", plan


def test_a_plan_is_made_once_for_as_long_as_it_is_kept(monkeypatch):
    cache.clear()
    first = figures_asked(QueryDict(PLAN))
    monkeypatch.setattr(taught, "make_plan", lambda _given: pytest.fail("made again"))
    assert figures_asked(QueryDict(PLAN)) == first


def test_what_a_plan_calls_its_model_is_escaped(ran, vera, as_user):
    told(ran(predicted={**PREDICTED, "model": "x/<script>alert(1)</script>", "method": "<b>"}))
    learn(now=NOW)
    assert OutcomeFigure.objects.exists()
    page = as_user(vera).get("/t/acme/jobs/taught/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;b&gt;" in page
