"""What a job says of itself over HTTP, with the token that only its own environment holds."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.utils import timezone

from jobs.book.events import change_job
from jobs.book.models import JobState
from jobs.metrics.models import JobPoint
from jobs.runner.tells import tells_of, token_of
from tests.jobs.conftest import newest

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(begin, make_instance):
    return begin("true", make_instance(managed=True, ssh=[{"host": "198.51.100.7", "port": 22}]))


@pytest.fixture
def tell(job):
    told = tells_of(newest(job))
    client = Client(headers={"Authorization": f"Bearer {told['RACKRENT_TOKEN']}"})

    def post(body: object):
        data = body if isinstance(body, str) else json.dumps(body)
        return client.post("/jobs/v1/tell", data, content_type="application/json")

    return post


def test_names_with_a_column_and_names_of_ones_own(tell):
    assert tell({"step": 10, "loss": 2.5, "lr": 1e-4, "accuracy": 0.81}).status_code == 201
    point = JobPoint.objects.get()
    assert (point.step, point.loss, point.learning_rate, point.others, point.source) == (
        10,
        2.5,
        1e-4,
        {"accuracy": 0.81},
        "call",
    )


def test_a_loss_that_is_none_is_kept_as_such(tell):
    assert tell('{"step": 3, "loss": NaN, "accuracy": Infinity}').status_code == 201
    point = JobPoint.objects.get()
    assert point.loss != point.loss
    assert point.others == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{", "body"),
        ("[]", "body"),
        ({"step": "ten"}, "step"),
        ({"step": 1.5}, "step"),
        ({"step": 2**70}, "step"),
        ({"ok": True}, "ok"),
        ({f"n{number}": 1 for number in range(60)}, "body"),
    ],
)
def test_what_is_no_point_is_refused_with_its_field(tell, body, field):
    answer = tell(body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not JobPoint.objects.exists()


def test_too_much_and_too_often(tell, time_machine):
    time_machine.move_to("2026-11-30T12:00:00Z", tick=False)
    assert tell('{"a": "' + "x" * 20_000 + '"}').status_code == 413
    answers = [tell({"step": number}).status_code for number in range(6)]
    assert answers == [201] * 5 + [429]


@pytest.mark.parametrize("header", ["", "Bearer rrj_wrong", "Bearer ", "Basic abc"])
def test_without_the_token_nothing_is_told(job, header):
    tells_of(newest(job))
    answer = Client(headers={"Authorization": header}).post("/jobs/v1/tell", "{}", content_type="application/json")
    assert answer.status_code == 401


def test_the_token_ends_with_its_job(job, tell):
    change_job(job, JobState.FAILED, at=timezone.now())
    assert tell({"step": 1}).status_code == 401


def test_the_token_is_not_kept(job):
    tells_of(newest(job))
    job.refresh_from_db()
    assert token_of(newest(job)) not in str(job.__dict__)
