"""`Idempotency-Key`: sent twice, done once, answered the same."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from fleet.alerts.models import MaintenanceWindow
from fleet.teams.idempotency import KEPT, prune_idempotent_writes
from fleet.teams.models import AuditEntry, IdempotentWrite, Scope

WINDOWS = "/api/v1/maintenance-windows/"
SOON = timezone.now() + timedelta(days=30)
BODY = {"starts_at": SOON.isoformat(), "ends_at": (SOON + timedelta(hours=2)).isoformat(), "reason": "driver"}


@pytest.fixture
def script(acme, make_token):
    return make_token(acme, Scope.OPERATE)[0]


def send(secret, key=None, body=None, method="post", path=WINDOWS):
    headers = {"Authorization": f"Bearer {secret}"} | ({"Idempotency-Key": key} if key is not None else {})
    return getattr(Client(), method)(path, body or BODY, content_type="application/json", headers=headers)


def test_a_second_write_under_one_key_changes_nothing_and_is_answered_the_same(script):
    first, second = send(script, "k-1"), send(script, "k-1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert MaintenanceWindow.objects.count() == 1
    assert AuditEntry.objects.count() == 1


def test_an_answer_without_a_body_comes_again(script):
    path = f"{WINDOWS}{send(script).json()['id']}/"
    answers = [send(script, "k-1", method="delete", path=path) for _ in range(2)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b""), (204, b"")]


def test_without_a_key_or_under_another_each_write_counts(script):
    for key in (None, None, "k-1", "k-2"):
        assert send(script, key).status_code == 201
    assert MaintenanceWindow.objects.count() == 4


def test_a_key_with_another_write_is_refused(script):
    send(script, "k-1")
    answer = send(script, "k-1", {**BODY, "reason": "network"})
    assert answer.status_code == 422
    assert answer.json()["error"] == "idempotency_key_reused"
    assert answer.json()["field"] == "Idempotency-Key"
    assert MaintenanceWindow.objects.count() == 1


def test_a_refusal_is_not_kept(script):
    assert send(script, "k-1", {**BODY, "ends_at": "2000-01-01T00:00:00Z"}).status_code == 400
    assert not IdempotentWrite.objects.exists()
    assert send(script, "k-1").status_code == 201


def test_keys_of_two_callers_are_apart(script, acme, make_token):
    other = make_token(acme, Scope.OPERATE)[0]
    assert [send(caller, "k-1").status_code for caller in (script, other)] == [201, 201]
    assert MaintenanceWindow.objects.count() == 2


def test_a_reader_is_refused_before_its_key_counts(acme, make_token):
    assert send(make_token(acme, Scope.READ)[0], "k-1").status_code == 403
    assert not IdempotentWrite.objects.exists()


@pytest.mark.parametrize("key", ["", "two words", "x" * 201, "schlüssel"])
def test_a_key_that_cannot_be_kept_is_refused(script, key):
    answer = send(script, key)
    assert answer.status_code == 400
    assert answer.json()["field"] == "Idempotency-Key"
    assert not MaintenanceWindow.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_it_once(script):
    answers = []

    def run():
        try:
            answers.append(send(script, "k-1"))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert MaintenanceWindow.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_that_is_held_for_long_is_told_apart(acme, make_token, monkeypatch):
    monkeypatch.setattr("fleet.teams.idempotency.WAIT_SECONDS", 1)
    secret, token = make_token(acme, Scope.OPERATE)
    holds, done = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic():
                IdempotentWrite.objects.create(caller=f"token:{token.pk}", key="k-1", fingerprint="z")
                holds.set()
                done.wait(timeout=30)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert holds.wait(timeout=30)
        answer = send(secret, "k-1")
    finally:
        done.set()
        holder.join(timeout=30)
    assert (answer.status_code, answer.json()["error"]) == (409, "in_progress")
    assert not MaintenanceWindow.objects.exists()


def test_keys_go_after_a_day(script):
    send(script, "k-1")
    now = timezone.now()
    assert prune_idempotent_writes(now=now + KEPT - timedelta(minutes=1)) == 0
    assert prune_idempotent_writes(now=now + KEPT + timedelta(minutes=1)) == 1
    assert send(script, "k-1").status_code == 201
    assert MaintenanceWindow.objects.count() == 2
