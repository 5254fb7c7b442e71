"""Gateways in the browser: set, given a token, explained; nobody else sees them."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.teams.models import AuditEntry
from jobs.gateway.models import Gateway
from jobs.loadtest.models import LoadState, LoadTest
from jobs.pages import gate as gate_page

pytestmark = pytest.mark.django_db
TYPED = {
    "enabled": "on",
    "most_running": 8,
    "queue_limit": 4,
    "requests_per_second": "5.5",
    "timeout_seconds": 30,
    "retry_after_seconds": 3,
    "key_name": "",
}


@pytest.fixture
def job(serves, make_instance):
    machine = make_instance(gpus=1, managed=True, ssh=[{"host": "198.51.100.7", "port": 22, "user": "root"}])
    return serves(machine, secrets={"KEY": "sk-verysecret", "ODD": 'a"; return 200 "$host'})


@pytest.fixture
def page(job):
    return f"/t/acme/jobs/{job.pk}/gateway/"


@pytest.fixture
def browser(alice, as_user):
    return as_user(alice)


def test_it_is_set_changed_and_closed(browser, job, page):
    assert browser.post(page, TYPED).headers["Location"] == page
    gateway = Gateway.objects.get()
    assert (gateway.most_running, gateway.queue_limit, gateway.requests_per_second, gateway.enabled) == (
        8,
        4,
        5.5,
        True,
    )
    name = gateway.name
    changed = TYPED | {"most_running": 9, "requests_per_second": ""}
    changed.pop("enabled")
    browser.post(page, changed)
    gateway.refresh_from_db()
    assert (gateway.most_running, gateway.requests_per_second, gateway.enabled, gateway.name) == (9, None, False, name)
    assert AuditEntry.objects.filter(action="gateway.set").count() == 2


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"most_running": 0}, "1"),
        ({"queue_limit": -1}, "0"),
        ({"timeout_seconds": 99_999}, "3600"),
        ({"requests_per_second": "nan"}, "Enter a number"),
        ({"key_name": "HOME"}, "HOME"),
        ({"key_name": "ODD"}, "A key in a header is made of letters"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_typed_is_lost(browser, page, typed, says):
    answer = browser.post(page, TYPED | {"retry_after_seconds": 77} | typed)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert 'value="77"' in answer.content.decode()
    assert not Gateway.objects.exists()


def test_its_token_is_shown_once_and_kept_as_a_hash(browser, page, settings):
    settings.GATEWAY_URL = "https://models.example"
    browser.post(page, TYPED)
    answer = browser.post(f"{page}token/")
    gateway = Gateway.objects.get()
    secret = answer.context["secret"]
    assert secret.startswith(gateway.token_prefix)
    assert secret in answer.content.decode()
    assert answer.headers["Cache-Control"] == "no-store"
    said = browser.get(page).content.decode()
    assert secret not in said
    assert f"https://models.example/{gateway.name}/v1" in said
    assert secret not in str([*Gateway.objects.values(), *AuditEntry.objects.values()])
    assert browser.get(f"{page}token/").status_code == 405


def test_what_is_missing_on_this_installation_is_said_with_its_remedy(browser, page, settings, monkeypatch):
    assert "setting GATEWAY_PORT" in browser.get(page).content.decode()
    settings.GATEWAY_PORT = 8500
    monkeypatch.setattr(gate_page, "find_nginx", lambda: None)
    assert "apt install nginx" in browser.get(page).content.decode()
    monkeypatch.setattr(gate_page, "find_nginx", lambda: "/usr/sbin/nginx")
    assert "apt install nginx" not in browser.get(page).content.decode()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "lets nobody in"),
        ({"token_hash": "x"}, "does not run"),
        ({"token_hash": "x", "seen_at": timezone.now, "state": "no_replica"}, "no server answers"),
        ({"token_hash": "x", "enabled": False}, "closed"),
    ],
)
def test_how_it_stands_is_said(browser, page, fields, says):
    browser.post(page, TYPED)
    Gateway.objects.update(**{name: value() if callable(value) else value for name, value in fields.items()})
    assert says in browser.get(page).content.decode()


def test_a_new_one_begins_as_the_load_test_suggests(browser, job, page):
    advice = [
        {"code": "max_concurrency", "value": 12},
        {"code": "queue_limit", "value": 3},
        {"code": "requests_per_second", "value": 6.4},
        {"code": "memory_share", "value": None},
    ]
    attempt = job.attempts.get()
    LoadTest.objects.create(
        job=job, attempt=attempt, plan={}, asked_at=timezone.now(), state=LoadState.DONE, replicas=2, advice=advice
    )
    initial = browser.get(page).context["form"].initial
    assert (initial["most_running"], initial["queue_limit"], initial["requests_per_second"]) == (12, 6, 6.4)


def test_viewers_look_and_others_do_not(as_user, vera, charlie, browser, job, page):
    browser.post(page, TYPED)
    viewer = as_user(vera)
    assert viewer.get(page).status_code == 200
    assert viewer.post(page, TYPED).status_code == 403
    assert viewer.post(f"{page}token/").status_code == 403
    other = as_user(charlie)
    assert other.get(page).status_code == 404
    assert other.get(f"/t/rival/jobs/{job.pk}/gateway/").status_code == 404
    assert other.post(f"/t/rival/jobs/{job.pk}/gateway/token/").status_code == 404
