"""Provider accounts over the API: the same refusals as the page, secrets that go in and never come out, an admin's business."""

from __future__ import annotations

import pytest
from django.test import Client

from fleet.inventory.adapters import secrets_of
from fleet.inventory.models import ProviderAccount
from fleet.teams.models import AuditEntry, Scope

ACCOUNTS = "/api/v1/accounts/"
KEY = "rpa_0123456789SECRET"
NEW = {"provider": "runpod", "name": "RunPod", "values": {"api_key": KEY}}


@pytest.fixture
def admin(acme, make_token):
    return make_token(acme, Scope.ADMIN)[0]


@pytest.fixture
def checked(monkeypatch):
    """Accounts whose check was begun."""
    begun: list[int] = []
    monkeypatch.setattr("fleet.inventory.accounts.check_account.delay", begun.append)
    return begun


def send(secret, method, path, body=None):
    headers = {"Authorization": f"Bearer {secret}"}
    return getattr(Client(), method)(path, body, content_type="application/json", headers=headers)


@pytest.fixture
def made(admin, checked, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = send(admin, "post", ACCOUNTS, NEW)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_an_account_is_kept_sealed_and_its_key_is_tried(made, checked):
    account = ProviderAccount.objects.get(pk=made["id"])
    assert (account.kind, account.name, account.monitor_only) == ("runpod", "RunPod", True)
    assert secrets_of(account)["api_key"] == KEY
    assert checked == [account.pk]
    assert KEY not in str(made)
    assert KEY not in str(list(AuditEntry.objects.values("old", "new")))


def test_a_change_keeps_what_is_not_sent(admin, made):
    answer = send(admin, "patch", f"{ACCOUNTS}{made['id']}/", {"name": "RunPod research", "monitor_only": False})
    assert answer.status_code == 200, answer.content
    account = ProviderAccount.objects.get(pk=made["id"])
    assert (account.name, account.monitor_only, account.poll_interval_seconds) == ("RunPod research", False, 60)
    assert secrets_of(account)["api_key"] == KEY


def test_pausing_and_resuming(admin, made):
    for paused in (True, False):
        answer = send(admin, "post", f"{ACCOUNTS}{made['id']}/pause/", {"paused": paused})
        assert answer.json()["enabled"] is not paused


def test_a_check_is_begun_anew(admin, made, checked, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = send(admin, "post", f"{ACCOUNTS}{made['id']}/verify/")
    assert (answer.status_code, answer.json()["checked_at"]) == (200, None)
    assert checked == [made["id"], made["id"]]


def test_disconnecting_forgets_the_key(admin, made):
    assert send(admin, "delete", f"{ACCOUNTS}{made['id']}/").status_code == 204
    account = ProviderAccount.objects.get(pk=made["id"])
    assert account.disconnected_at is not None
    assert bytes(account.credentials) == b""
    assert send(admin, "delete", f"{ACCOUNTS}{made['id']}/").status_code == 404


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"provider": "nobody"}, "provider", "It is one of: alibaba"),
        ({"provider": "sandbox"}, "provider", "no such provider"),
        ({"values": {"api_kez": "x"}}, "values.api_kez", "It takes: api_key"),
        ({"values": {}}, "values.api_key", ""),
        ({"name": "  "}, "name", ""),
        ({"poll_interval_seconds": 7}, "poll_interval_seconds", ""),
        ({"nam": "x"}, "nam", "Did you mean `name`?"),
    ],
)
def test_what_cannot_be_is_refused_by_name(admin, changes, field, words):
    answer = send(admin, "post", ACCOUNTS, {**NEW, **changes})
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert words in answer.json()["detail"]
    assert not ProviderAccount.objects.exists()


def test_a_second_account_of_one_name_is_refused(admin, made):
    answer = send(admin, "post", ACCOUNTS, NEW)
    assert (answer.status_code, answer.json()["field"]) == (400, "name")


@pytest.mark.parametrize("scope", [Scope.READ, Scope.OPERATE])
def test_it_is_an_admins_business(acme, make_token, made, scope):
    secret = make_token(acme, scope)[0]
    for method, path in (
        ("post", ACCOUNTS),
        ("patch", f"{ACCOUNTS}{made['id']}/"),
        ("delete", f"{ACCOUNTS}{made['id']}/"),
    ):
        assert send(secret, method, path, NEW).status_code == 403


def test_another_teams_account_does_not_exist(rival, make_token, made):
    stranger = make_token(rival, Scope.ADMIN)[0]
    assert send(stranger, "delete", f"{ACCOUNTS}{made['id']}/").status_code == 404
