"""Whoever looks at a machine sees what runs on it, and what ran."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.book.events import note
from jobs.book.models import Job, JobState
from jobs.findings.models import JobFinding
from jobs.metrics.models import JobPoint
from tests.jobs.conftest import newest

pytestmark = pytest.mark.django_db
SSH = [{"host": "198.51.100.7", "port": 22}]


@pytest.fixture
def machines(make_instance):
    return [make_instance(name=f"train-0{number}", managed=True, ssh=SSH) for number in (1, 2)]


@pytest.fixture
def page(client, alice):
    client.force_login(alice)
    return lambda machine, more="": client.get(f"/t/acme/instances/{machine.pk}/{more}").content.decode()


def test_a_machine_shows_what_runs_on_it(begin, machines, page):
    job = begin("true", *machines, name="<b>llama</b>")
    Job.objects.update(state=JobState.RUNNING, started_at=timezone.now())
    attempt = newest(job)
    now = timezone.now()
    JobPoint.objects.create(attempt=attempt, at=now, source="log", step=120, steps=900)
    JobFinding.objects.create(attempt=attempt, code="stalled", sure="certain", found_at=now, seen_at=now)
    shown = page(machines[1])
    assert f'<a href="/t/acme/jobs/{job.pk}/"><b>&lt;b&gt;llama&lt;/b&gt;</b></a>' in shown
    assert "step 120 of 900 · rank 1 of 2 machines" in " ".join(shown.replace("</span>", " ").split())
    assert "The run stands" in shown


def test_a_machine_without_jobs_shows_no_panel(begin, machines, page):
    job = begin("true", machines[0])
    assert "what runs here" not in page(machines[1])
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED)
    assert "what runs here" not in page(machines[0])


def test_several_jobs_cost_as_many_queries_as_one(begin, make_instance, machines, page, rf):
    from jobs.pages.on_machine import jobs_here

    counts = []
    begin("true", machines[0])
    for _round in range(2):
        with CaptureQueriesContext(connection) as captured:
            jobs_here(rf.get("/"), machines[0])
        counts.append(len(captured))
    assert counts == [3, 3]


def test_the_timeline_of_a_machine_tells_of_its_jobs_only(begin, machines, page):
    here, elsewhere = begin("true", machines[0], name="here"), begin("true", machines[1], name="elsewhere")
    now = timezone.now() - timedelta(minutes=1)
    for job in (here, elsewhere):
        note(job, "running", at=now, attempt=newest(job))
    node = newest(here).nodes.get()
    note(here, "ended", at=now, attempt=newest(here), node=node, values={"exit_code": 137})
    note(here, "found", at=now, attempt=newest(here), values={"code": "host_memory"})
    shown = page(machines[0], "timeline/")
    assert "Job here: running" in shown
    assert "Job here: ended on the machine" in shown
    assert "exit code 137" in shown
    assert "The machine ran out of memory" in shown
    assert "elsewhere" not in shown


def test_the_timeline_can_be_narrowed_to_jobs(begin, machines, page):
    job = begin("true", machines[0], name="here")
    note(job, "running", at=timezone.now() - timedelta(minutes=1), attempt=newest(job))
    assert "Job here: running" in page(machines[0], "timeline/?kind=jobs")
    assert "Job here: running" not in page(machines[0], "timeline/?kind=money")
