"""Alerts about jobs: opened by what stands in rows, said in words, linked to the job, and closed when it is over."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from fleet.alerts.models import Alert, AlertEvent, MaintenanceWindow
from fleet.alerts.people import resolve_note
from fleet.alerts.words import closed_words, title_of, why_of
from jobs.book.models import Job, JobState
from jobs.findings.alerts.telling import tell_of_jobs
from jobs.findings.models import JobFinding
from tests.jobs.conftest import ACTOR, newest

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)
LATER = NOW + timedelta(minutes=30)


@pytest.fixture
def job(begin, make_instance):
    machine = make_instance(
        name="train-01", price_per_hour=Decimal("2.50"), managed=True, ssh=[{"host": "198.51.100.7", "port": 22}]
    )
    made = begin("true", machine)
    Job.objects.filter(pk=made.pk).update(state=JobState.RUNNING, started_at=NOW, state_since=NOW)
    return made


def end(job: Job, state: JobState, why: str = "exit") -> None:
    Job.objects.filter(pk=job.pk).update(state=state, why=why, ended_at=NOW, state_since=NOW)


def find(job: Job, code: str, **more) -> JobFinding:
    times = {"found_at": NOW, "seen_at": NOW}
    return JobFinding.objects.create(attempt=newest(job), code=code, sure="certain", **times | more)


def test_a_failed_job_is_an_alert_that_says_why(job):
    find(job, "oom_logits")
    newest(job).nodes.update(exit_code=1)
    end(job, JobState.FAILED)
    assert tell_of_jobs(now=NOW) == 1
    alert = Alert.objects.get()
    assert (alert.cause, alert.subject, alert.severity) == ("job.failed", f"job:{job.pk}", "warning")
    assert (alert.instance, alert.price_per_hour) == (newest(job).nodes.get().instance, None)
    assert title_of(alert) == "run-1 failed"
    assert why_of(alert) == "the command ended with an error; exit code 1; Out of GPU memory: logits and loss"
    with translation.override("zh-hans"):
        assert title_of(alert) == "run-1 失败"
        assert why_of(alert).startswith("命令")


def test_the_same_again_is_no_news_and_writes_nothing(job):
    end(job, JobState.LOST, "lost")
    tell_of_jobs(now=NOW)
    with CaptureQueriesContext(connection) as captured:
        assert tell_of_jobs(now=LATER) == 1
    assert not [one for one in captured if not one["sql"].startswith("SELECT")]
    assert AlertEvent.objects.count() == 1


def test_what_stands_on_a_running_job_costs_what_its_machines_cost(job):
    find(job, "stalled")
    tell_of_jobs(now=NOW)
    alert = Alert.objects.get()
    assert (alert.cause, alert.severity, alert.price_per_hour) == ("job.stalled", "urgent", Decimal("2.50"))
    assert why_of(alert).startswith("The run stands: ranks wait for each other")


def test_it_closes_when_the_finding_is_gone(job):
    row = find(job, "memory_leak")
    tell_of_jobs(now=NOW)
    row.gone_at = NOW + timedelta(minutes=20)
    row.save()
    assert tell_of_jobs(now=LATER) == 0
    alert = Alert.objects.get()
    assert (alert.cause, alert.closed_why) == ("job.leak", "evidence")


def test_it_closes_when_the_job_ends(job):
    find(job, "stalled")
    tell_of_jobs(now=NOW)
    end(job, JobState.STOPPED, "asked")
    tell_of_jobs(now=LATER)
    assert closed_words(Alert.objects.get()) == "the job has ended"


def test_it_closes_when_the_job_was_begun_again_or_a_day_is_over(job, begin, make_instance):
    end(job, JobState.FAILED)
    tell_of_jobs(now=NOW)
    other = make_instance(name="train-02", managed=True, ssh=[{"host": "198.51.100.8", "port": 22}])
    again = begin("true", other)
    Job.objects.filter(pk=again.pk).update(rerun_of=job)
    tell_of_jobs(now=LATER)
    assert Alert.objects.get().closed_why == "job_begun_again"
    end(again, JobState.FAILED)
    tell_of_jobs(now=LATER)
    tell_of_jobs(now=NOW + timedelta(hours=24))
    assert Alert.objects.get(subject=f"job:{again.pk}").closed_why == "job_old"


def test_a_job_that_is_removed_takes_its_alert_along(job):
    end(job, JobState.FAILED)
    tell_of_jobs(now=NOW)
    job.delete()
    tell_of_jobs(now=LATER)
    assert Alert.objects.get().closed_why == "removed"


def test_what_somebody_put_away_stays_away_until_it_has_been_over(job):
    row = find(job, "tail_latency")
    tell_of_jobs(now=NOW)
    resolve_note(actor=ACTOR, alert=Alert.objects.get(), now=NOW)
    tell_of_jobs(now=LATER)
    assert not Alert.objects.filter(closed_at=None).exists()
    row.gone_at = LATER
    row.save()
    tell_of_jobs(now=LATER + timedelta(minutes=10))
    row.gone_at = None
    row.save()
    tell_of_jobs(now=LATER + timedelta(minutes=11))
    assert Alert.objects.filter(closed_at=None).exists()


def test_a_maintenance_window_keeps_it_quiet(job, acme):
    MaintenanceWindow.objects.create(team=acme, starts_at=NOW - timedelta(hours=1), ends_at=NOW + timedelta(hours=1))
    end(job, JobState.FAILED)
    tell_of_jobs(now=NOW)
    assert AlertEvent.objects.get().quiet == "maintenance"


def test_a_host_key_that_changed_names_the_machine(job):
    newest(job).nodes.update(error="host_key_changed", reached_at=NOW)
    tell_of_jobs(now=NOW)
    alert = Alert.objects.get()
    assert (alert.cause, alert.severity) == ("job.unreachable", "urgent")
    assert why_of(alert).startswith("train-01: it shows another host key than before")


def test_a_hundred_jobs_cost_as_many_queries_as_one(begin, make_instance):
    counts = []
    for size in (1, 12):
        for number in range(size):
            machine = make_instance(name=f"m{size}-{number}", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}])
            begin("true", machine)
        with CaptureQueriesContext(connection) as captured:
            tell_of_jobs(now=NOW)
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_the_page_of_the_alert_leads_to_the_job(job, client, alice, charlie):
    find(job, "stalled")
    tell_of_jobs(now=NOW)
    client.force_login(alice)
    page = client.get(f"/t/acme/alerts/{Alert.objects.get().pk}/").content.decode()
    assert f'<a href="/t/acme/jobs/{job.pk}/">Open the job</a>' in page
    client.force_login(charlie)
    assert client.get(f"/t/acme/alerts/{Alert.objects.get().pk}/").status_code == 404
