"""How a job is to serve: asked on the form and refused with the field that has to change."""

from __future__ import annotations

import pytest

from jobs.book.manage import order_of
from jobs.book.models import Job, JobKind
from jobs.book.order import JobRefused
from jobs.book.serving import Serving

pytestmark = pytest.mark.django_db
PLACE = [{"host": "198.51.100.7", "port": 22, "user": "root"}]


@pytest.fixture
def machine(make_instance):
    return make_instance(gpus=1, managed=True, ssh=PLACE)


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def filled(machine, **more: object) -> dict[str, object]:
    return {
        "name": "chat",
        "kind": "serving",
        "machines": [machine.pk],
        "command": "vllm serve org/m",
        "retries": 0,
        "when_done": "idle",
    } | more


def test_what_was_typed_is_kept_with_what_is_usual(browser, machine):
    browser.post("/t/acme/jobs/new/", filled(machine, serving_port=8000, serving_model="org/m", serving_engine="tgi"))
    assert Job.objects.get().serving == {
        "port": 8000,
        "health_path": "/health",
        "model": "org/m",
        "engine": "tgi",
        "metrics_port": None,
        "restart": "never",
        "most_restarts": 3,
        "timeout_seconds": None,
    }


def test_a_job_that_serves_nothing_has_none_of_it(browser, machine):
    browser.post("/t/acme/jobs/new/", filled(machine, kind="training", serving_port=8000))
    assert Job.objects.get().serving == {}


def test_without_a_port_the_form_says_so_at_the_field(browser, machine):
    answer = browser.post("/t/acme/jobs/new/", filled(machine, serving_model="org/m"))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Say on which port" in page.split('id="id_serving_port_error"')[1][:200]
    assert 'value="org/m"' in page
    assert not Job.objects.exists()


def test_run_again_begins_with_it(browser, begin, machine):
    job = begin("x", machine, kind=JobKind.SERVING, serving={"port": 8123, "health_path": "/ready"})
    page = browser.get(f"/t/acme/jobs/new/?like={job.pk}").content.decode()
    assert 'value="8123"' in page
    assert 'value="/ready"' in page
    assert order_of(job).serving == Serving(8123, "/ready").to_json()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "serving.port"),
        ({"port": 0}, "serving.port"),
        ({"port": 70_000}, "serving.port"),
        ({"port": True}, "serving.port"),
        ({"port": "8000"}, "serving.port"),
        ({"port": 80, "health_path": "health"}, "serving.health_path"),
        ({"port": 80, "health_path": "/x?y=1 HTTP/1.1"}, "serving.health_path"),
        ({"port": 80, "model": "a\nb"}, "serving.model"),
        ({"port": 80, "model": "m" * 201}, "serving.model"),
        ({"port": 80, "engine": "ollama"}, "serving.engine"),
        ({"port": 80, "restart": ["never"]}, "serving.restart"),
        ({"port": 80, "most_restarts": -1}, "serving.most_restarts"),
        ({"port": 80, "metrics_port": "x"}, "serving.metrics_port"),
        ({"port": 80, "timeout_seconds": 0}, "serving.timeout_seconds"),
        ({"port": 80, "timeout_seconds": "30"}, "serving.timeout_seconds"),
        ({"port": 80, "nonsense": 1}, "serving"),
    ],
)
def test_what_cannot_be_served_is_refused_by_its_field(begin, machine, given, field):
    with pytest.raises(JobRefused) as refused:
        begin("x", machine, kind=JobKind.SERVING, serving=given)
    assert refused.value.field == field
    assert not Job.objects.exists()


def test_other_kinds_serve_nothing(begin, machine):
    with pytest.raises(JobRefused, match="Only a job of kind serving"):
        begin("x", machine, kind=JobKind.TRAINING, serving={"port": 80})
