"""What a job may cost, cost, and came to beside its plan, over the API."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.book.models import Attempt, Job, JobState
from jobs.metrics.models import JobPoint
from tests.jobs.api.conftest import JOBS, PLACE

pytestmark = pytest.mark.django_db


@pytest.fixture
def priced(make_instance):
    return make_instance(name="priced", managed=True, ssh=PLACE, price_per_hour="2", currency="USD")


def test_a_budget_is_in_the_teams_currency_where_none_is_said(post, priced):
    said = post(name="a", command="true", machines=[priced.pk], budget_amount="20").json()
    assert (said["budget_amount"], said["budget_currency"]) == ("20.00", "USD")
    again = post(f"{said['id']}/rerun/", name="b").json()
    assert (again["budget_amount"], again["budget_currency"]) == ("20.00", "USD")


def test_a_budget_that_cannot_be_kept_names_its_field(post, priced, machine):
    refused = post(name="a", command="true", machines=[priced.pk], budget_amount="20", budget_currency="EUR")
    assert refused.status_code == 400
    assert "budget_currency" in refused.text
    assert "Nobody knows what" in post(name="a", command="true", machines=[machine.pk], budget_amount="20").text
    assert not Job.objects.exists()


def test_a_job_says_what_it_cost_and_how_it_stands_beside_its_plan(begin, priced, script):
    job = begin("true", priced, predicted={"seconds_per_step": 2.0, "currency": "USD", "cost_per_hour": "2"})
    began = timezone.now() - timedelta(hours=3)
    Attempt.objects.update(
        created_at=began, started_at=began, ended_at=began + timedelta(hours=2), state=JobState.SUCCEEDED
    )
    attempt = job.attempts.get()
    for number in range(10):
        JobPoint.objects.create(attempt=attempt, at=began, source="log", step=number, seconds_per_step=3.0)
    said = script.get(f"{JOBS}{job.pk}/").json()
    assert said["cost"] == {
        "amount": "4.0000",
        "currency": "USD",
        "per_hour": None,
        "heads_for": None,
        "others": {},
        "is_floor": False,
    }
    step = next(one for one in said["measured"] if one["measure"] == "seconds_per_step")
    assert step == {"measure": "seconds_per_step", "planned": "2", "measured": "3", "ratio": "1.5000", "missing": ""}
