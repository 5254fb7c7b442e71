"""A job's budget: an alert at 80 %, a polite stop at 100 %, and no budget that could not be kept."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.alerts.models import Alert
from fleet.alerts.places import place_of
from fleet.alerts.words import title_of, why_of
from fleet.costs.spend.models import ExchangeRate
from fleet.teams.models import AuditEntry
from jobs.book.models import Attempt, Job, JobState
from jobs.book.order import JobRefused
from jobs.runner.course import Facts, NodeFacts, State, advance
from jobs.runner.drive import asked_of
from jobs.spending.watch import watch_budgets
from tests.jobs.conftest import go_on, newest
from tests.jobs.spending.conftest import PLACE, at

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(rented, held) -> Job:
    """$24 at $2.40 an hour are 10 hours."""
    job: Job = held(0, None, rented("a"), budget_amount=Decimal(24), budget_currency="USD").job
    return job


def alert_of(job: Job) -> Alert:
    return Alert.objects.get(team=job.team, cause="job.budget", subject=f"job:{job.pk}")


def test_nothing_is_said_below_four_fifths(job):
    assert watch_budgets(now=at(7.9)) == 0
    assert not Alert.objects.exists()


def test_at_four_fifths_an_alert_says_so_and_the_job_goes_on(job):
    assert watch_budgets(now=at(8)) == 0
    alert = alert_of(job)
    assert alert.severity == "warning"
    assert place_of(alert.subject) is not None
    assert title_of(alert) == "run-1 has almost spent its budget"
    assert "80 % of the job's budget of $24.00 is spent: $19.20" in why_of(alert)
    job.refresh_from_db()
    assert job.budget_spent_at is None


def test_at_all_of_it_it_is_asked_to_end_once(job):
    watch_budgets(now=at(8))
    assert watch_budgets(now=at(10)) == 1
    assert watch_budgets(now=at(10.1)) == 0
    job.refresh_from_db()
    assert job.budget_spent_at == at(10)
    assert asked_of(newest(job), at(10)) == "budget"
    assert newest(job).next_at == at(10)
    assert job.events.filter(kind="budget_spent").count() == 1
    assert AuditEntry.objects.filter(action="job.spend").count() == 1
    alert = alert_of(job)
    assert (alert.severity, alert.closed_at) == ("urgent", None)
    assert "It is being stopped." in why_of(alert)


def test_the_alert_is_over_with_the_job(job):
    watch_budgets(now=at(8))
    Job.objects.filter(pk=job.pk).update(state=JobState.SUCCEEDED)
    watch_budgets(now=at(8.5))
    assert (alert_of(job).closed_at, alert_of(job).closed_why) == (at(8.5), "job_ended")


def test_one_that_cannot_be_judged_keeps_no_other_from_it(job, rented, held, monkeypatch, caplog):
    second = held(0, None, rented("b"), budget_amount=Decimal(1), budget_currency="USD").job
    real = __import__("jobs.spending.watch", fromlist=["hold_to_budget"]).hold_to_budget

    def broken(one, *, now):
        if one == job:
            raise ValueError("no")
        return real(one, now=now)

    monkeypatch.setattr("jobs.spending.watch.hold_to_budget", broken)
    assert watch_budgets(now=at(2)) == 1
    second.refresh_from_db()
    assert second.budget_spent_at == at(2)
    assert f"The budget of job {job.pk} could not be judged" in caplog.text


def test_a_budget_is_held_in_its_own_currency(acme, rented, held):
    ExchangeRate.objects.create(team=acme, currency="USD", into="EUR", day=date(2026, 11, 1), rate="0.5", source="x")
    held(0, None, rented("a"), budget_amount=Decimal(12), budget_currency="EUR")
    assert watch_budgets(now=at(9.9)) == 0
    assert watch_budgets(now=at(10)) == 1


def test_what_spent_its_budget_ends_stopped_and_politely():
    node = NodeFacts(prepared=True, launched=True, started=True)
    facts = Facts(at(1), State.RUNNING, at(0), (node,), asked="budget")
    step = advance(facts)
    assert (step.state, step.why, step.acts) == (State.STOPPING, "budget", ("term",))
    over = Facts(at(1), State.STOPPING, at(0), (NodeFacts(launched=True, ended_at=at(1)),), "budget", "budget")
    assert advance(over).state is State.STOPPED


@pytest.mark.parametrize(
    ("amount", "currency", "field", "says"),
    [
        ("0", "USD", "budget_amount", "more than 0"),
        ("5", "usd", "budget_currency", "three letters"),
        ("5", "EUR", "budget_currency", "no exchange rate leads from there"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(begin, rented, amount, currency, field, says):
    with pytest.raises(JobRefused) as refused:
        begin("true", rented("a"), budget_amount=Decimal(amount), budget_currency=currency)
    assert (refused.value.field, says in str(refused.value.text)) == (field, True)
    assert not Job.objects.exists()


def test_a_machine_whose_price_nobody_knows_takes_no_job_with_a_budget(begin, rented):
    with pytest.raises(JobRefused, match="Nobody knows what a costs"):
        begin("true", rented("a", price=None), budget_amount=Decimal(5), budget_currency="USD")


def test_it_is_typed_on_the_form_and_kept_for_a_rerun(as_user, bob, acme, make_instance):
    machine = make_instance(managed=True, ssh=PLACE, price_per_hour="2", currency="USD")
    browser = as_user(bob)
    page = {"name": "run-1", "kind": "training", "machines": [machine.pk], "command": "true", "retries": 0}
    page |= {"when_done": "idle", "budget_amount": "40", "budget_currency": "usd"}
    answer = browser.post("/t/acme/jobs/new/", page)
    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.get()
    assert (job.budget_amount, job.budget_currency) == (Decimal(40), "USD")
    again = browser.get(f"/t/acme/jobs/new/?like={job.pk}").content.decode()
    assert 'name="budget_amount" value="40.00"' in again
    assert 'name="budget_currency" value="USD"' in again
    refused = browser.post("/t/acme/jobs/new/", page | {"budget_currency": "EUR"})
    assert refused.status_code == 422
    assert "no exchange rate leads from there" in refused.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_real_process_is_ended_when_its_budget_is_spent(machine_of, begin):
    instance, _server = machine_of("a")
    type(instance).objects.filter(pk=instance.pk).update(price_per_hour=Decimal(1), currency="USD")
    job = begin(
        "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done",
        instance,
        budget_amount=Decimal("0.01"),
        budget_currency="USD",
    )
    go_on(job, until=lambda one: one.state == JobState.RUNNING and newest(one).nodes.get().started_at is not None)
    Attempt.objects.filter(job=job).update(created_at=at(0))
    assert watch_budgets(now=timezone.now()) == 1
    go_on(job)
    assert (job.state, job.why) == (JobState.STOPPED, "budget")
    assert job.events.filter(kind="stopped", values={"why": "budget"}).exists()
