"""Jobs in a browser: a run on a real SSH server is followed to its end without reloading, its log is one that can be used, and nothing in it is obeyed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.telemetry.partitions import ensure_partitions
from jobs.book.models import Job, JobState
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.store import store_lines
from tests.jobs.conftest import begin, go_on, loopback, machine_of, newest

from .waiting import until

__all__ = ["begin", "loopback", "machine_of"]

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]
HOSTILE = "<img src=x onerror=document.title=1><script>document.title=2</script>"
TRAINING = f"""
for step in 1 2 3; do echo "step $step/6 loss=$((9 - step)).5 lr=0.001"; done
while [ ! -f go ]; do sleep 0.05; done
for step in 4 5 6; do echo "step $step/6 loss=$((9 - step)).5 lr=0.001"; done
echo 'WARNING {HOSTILE}'
"""


@pytest.fixture(autouse=True)
def partitions(server) -> None:
    ensure_partitions(now=timezone.now())


def beside(what, *arguments, **more):
    """In a thread of its own: the browser's loop runs in this one."""

    def call():
        try:
            return what(*arguments, **more)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(120)


def write(job: Job, text: str) -> None:
    node = newest(job).nodes.get()
    store_part(node=node, part=Part(node.log_offset, text.encode()), at=timezone.now())


def has_told(job: Job) -> bool:
    return job.state == JobState.RUNNING and newest(job).points.count() == 3


def lines(page: Page) -> list[str]:
    return page.locator(".joblog li[id] > span").all_inner_texts()


def test_a_run_is_followed_to_its_end_without_reloading(machine_of, begin, alice, open_context):
    machine, server = machine_of()
    job = begin(TRAINING, machine)
    beside(go_on, job, until=has_told)
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/jobs/{job.pk}/")
    expect(page.locator("#part-head .badge")).to_have_text("running")
    expect(page.locator("#part-summary")).to_contain_text("Step 3 of 6")
    assert lines(page)[-1] == "step 3/6 loss=6.5 lr=0.001"
    page.evaluate("document.body.dataset.mine = 'kept'")
    (server.jobs / newest(job).marker / "work" / "go").touch()
    beside(go_on, job)
    expect(page.locator(".joblog")).to_contain_text(HOSTILE)
    assert lines(page)[-2:] == ["step 6/6 loss=3.5 lr=0.001", f"WARNING {HOSTILE}"]
    expect(page.locator("#part-head .badge")).to_have_text("succeeded", timeout=15_000)
    expect(page.locator("#part-summary")).to_contain_text("Step 6 of 6")
    expect(page.locator("#part-summary")).to_contain_text("Ended well on train-01")
    expect(page.locator("#job-says")).to_have_text("succeeded")
    assert page.evaluate("document.body.dataset.mine") == "kept"
    assert page.title().startswith("run-1")
    assert page.locator(".joblog img").count() == 0


def test_figures_of_the_run_are_drawn_on_one_axis(begin, make_instance, alice, open_context):
    job = begin("true", make_instance(ssh=PLACE))
    attempt = newest(job)
    attempt.started_at, attempt.state = timezone.now() - timedelta(minutes=10), JobState.RUNNING
    attempt.save()
    for step in (1, 2, 3):
        store_lines(
            attempt=attempt,
            lines=[(step, f"step {step}/9 loss={4 - step}.5 lr=0.01")],
            at=timezone.now() - timedelta(minutes=5 - step),
        )
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/jobs/{job.pk}/")
    chart = "document.querySelector('[data-figure-of-job]')"
    until(page, lambda: page.evaluate(f"{chart}.data?.length") == 3)
    assert page.evaluate(f"{chart}.data.map((trace) => trace.name)") == ["Loss", "Step time", "Learning rate"]
    assert page.evaluate(f"{chart}.data.map((trace) => trace.xaxis)") == ["x", "x", "x"]
    assert page.evaluate(f"{chart}.data[0].y") == [3.5, 2.5, 1.5]


def test_a_long_log_is_moved_through_searched_and_paused(begin, make_instance, alice, open_context):
    job = begin("true", make_instance(ssh=PLACE))
    write(job, "".join(f"{'ERROR: odd' if number == 777 else 'step'} {number}\n" for number in range(1, 100_001)))
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/jobs/{job.pk}/")
    assert len(lines(page)) == 200
    assert lines(page)[-1] == "step 100000"
    write(job, "step 100001\n")
    expect(page.locator("#L100001")).to_be_visible()
    page.locator("[data-log-follow]").uncheck()
    write(job, "step 100002\nstep 100003\n")
    newer = page.locator("[data-log-newer]")
    expect(newer).to_have_text("2 new lines, go on")
    assert page.locator("#L100002").count() == 0
    newer.click()
    expect(page.locator("#L100003")).to_be_visible()
    expect(page.locator("[data-log-follow]")).to_be_checked()
    page.get_by_label("Warnings only").check()
    expect(page.locator(".joblog li[id]")).to_have_count(1, timeout=20_000)
    page.get_by_label("Warnings only").uncheck()
    page.get_by_label("Search the log").fill("STEP 5000")
    expect(page.locator(".joblog mark").first).to_have_text("step 5000", timeout=20_000)
    assert lines(page)[0] == "step 5000"
    page.goto(f"/t/acme/jobs/{job.pk}/#L50000")
    expect(page.locator("#L50000")).to_be_visible()
    expect(page.locator(".joblog li.here")).to_have_text("50000step 50000")
    assert page.locator(".joblog li").count() <= 2_000


def test_by_keyboard(begin, make_instance, alice, open_context):
    job = begin("true", make_instance(ssh=PLACE))
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/jobs/{job.pk}/")
    page.keyboard.press("/")
    expect(page.get_by_label("Search the log")).to_be_focused()
    page.locator("#stop").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("nothing: it has not begun")
    expect(page.get_by_role("button", name="Keep it running")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#stop")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("It is asked to end")).to_be_visible()
    assert Job.objects.get(pk=job.pk).stop_asked_by == alice


@pytest.mark.parametrize("options", [{"locale": "zh-CN", "color_scheme": "dark"}, {"color_scheme": "light"}])
def test_on_a_phone(begin, make_instance, alice, open_context, options):
    job = begin("x" * 300, make_instance(ssh=PLACE))
    write(job, "y" * 3_000 + "\n")
    page = open_context(alice, width=390, **options).new_page()
    for path in ("jobs/", f"jobs/{job.pk}/", f"jobs/{job.pk}/stop/", f"jobs/{job.pk}/again/", "jobs/new/"):
        page.goto(f"/t/acme/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    if "zh" in options.get("locale", ""):
        page.goto(f"/t/acme/jobs/{job.pk}/")
        expect(page.locator("#log h2")).to_have_text("日志")
