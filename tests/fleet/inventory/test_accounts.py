"""Provider accounts: secrets apart from options, blank secrets kept, changes audited without secrets, disconnected but on record."""

from __future__ import annotations

import json

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from fleet.inventory.accounts import (
    create_account,
    delete_account,
    manual_account,
    pause_account,
    update_account,
    verify_account,
)
from fleet.inventory.checks import run_checks
from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import poll_account
from fleet.providers.base import AccountInfo, Scope
from fleet.providers.errors import AuthFailed, InvalidOption
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON, SECRET

SCOPES = (Scope("read machines", granted=True), Scope("read volumes", granted=False, without="disk sizes stay unknown"))


@pytest.fixture
def actor(alice) -> Actor:
    return Actor(alice, "alice", "page")


def change(actor, account, **values):
    return update_account(
        actor=actor, account=account, name="Lab", values=values, monitor_only=True, poll_interval_seconds=60
    )


def test_secrets_lie_apart_from_options(lab):
    assert lab.options == {"team": ""}
    assert open_sealed(lab.credentials) == {"key": SECRET}
    assert lab.monitor_only


def test_the_audit_log_has_no_secret(lab, actor):
    change(actor, lab, key="sk-another-secret-999", team="research")
    entries = json.dumps(list(AuditEntry.objects.values_list("old", "new")))
    assert SECRET not in entries
    assert "sk-another" not in entries
    assert AuditEntry.objects.get(action="account.update").new == {
        "options": {"team": "research"},
        "credentials": "replaced",
    }


def test_an_empty_secret_keeps_the_one_that_is_there(lab, actor):
    updated = change(actor, lab, key="", team="research")
    assert open_sealed(updated.credentials) == {"key": SECRET}
    assert "credentials" not in AuditEntry.objects.get(action="account.update").new


def test_an_option_that_the_adapter_refuses_changes_nothing(lab, actor):
    with pytest.raises(InvalidOption) as refused:
        change(actor, lab, team="nowhere")
    assert refused.value.field == "team"
    lab.refresh_from_db()
    assert lab.options == {"team": ""}


def test_a_changed_account_is_polled_at_once(lab, actor):
    ProviderAccount.objects.update(next_poll_at="2099-01-01T00:00Z")
    updated = change(actor, lab)
    assert updated.next_poll_at.year < 2099


def test_pausing_twice_is_one_write(lab, actor):
    assert pause_account(actor=actor, account=lab, paused=True)
    assert not pause_account(actor=actor, account=lab, paused=True)
    assert AuditEntry.objects.filter(action="account.pause").count() == 1


def test_disconnecting_wipes_the_key_keeps_the_record_and_claims_nothing(lab, actor, provider, listed):
    provider.machines = [listed("i-1", rate="2")]
    poll_account(account=lab, now=NOON)
    assert delete_account(actor=actor, account=lab, now=NOON)
    lab.refresh_from_db()
    machine = Instance.objects.get()
    assert (bytes(lab.credentials), lab.enabled, lab.disconnected_at) == (b"", False, NOON)
    assert (machine.gone_at, machine.state, machine.billing) == (NOON, "unknown", "unknown")
    assert machine.observations.count() == 2
    assert not delete_account(actor=actor, account=lab, now=NOON)


def test_its_name_is_free_again(lab, actor, acme):
    delete_account(actor=actor, account=lab, now=NOON)
    create_account(actor=actor, team=acme, kind="scripted", name="Lab", values={"key": SECRET})


def test_there_is_one_account_for_typed_machines(acme, rival):
    assert manual_account(acme) == manual_account(acme)
    assert manual_account(acme) != manual_account(rival)


def test_verify_asks_in_the_background(lab, actor, django_capture_on_commit_callbacks, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr("fleet.inventory.accounts.check_account.delay", asked.append)
    with django_capture_on_commit_callbacks(execute=True):
        verify_account(actor=actor, account=lab)
    assert asked == [lab.pk]
    lab.refresh_from_db()
    assert lab.check_started_at is not None
    assert lab.checked_at is None


def test_a_check_says_what_the_key_sees_and_lacks(lab, provider, listed, monkeypatch):
    monkeypatch.setattr(provider, "info", AccountInfo("lab-42", "EUR", SCOPES))
    provider.machines = [listed("i-1", rate="2", gpu_count=8), listed("i-2")]
    results = run_checks(account=lab, now=NOON)
    assert [(result["name"], result["result"]) for result in results] == [
        ("accepted", "ok"),
        ("lacks", "warn"),
        ("scope", "ok"),
        ("scope", "warn"),
        ("machines", "ok"),
        ("unpriced", "warn"),
    ]
    lab.refresh_from_db()
    assert (lab.external_id, lab.currency, lab.checked_at) == ("lab-42", "EUR", NOON)
    assert lab.check_results == results
    assert not Instance.objects.exists()


def test_the_same_account_connected_twice_is_said(lab, provider, actor, acme):
    run_checks(account=lab, now=NOON)
    twin = create_account(actor=actor, team=acme, kind="scripted", name="Lab again", values={"key": SECRET})
    results = run_checks(account=twin, now=NOON)
    assert {"name": "twin", "result": "warn", "account": "Lab"} in results


def test_an_adapter_with_a_bug_is_a_failed_check_and_no_endless_wait(lab, provider, caplog):
    provider.error = KeyError("machines")
    (result,) = run_checks(account=lab, now=NOON)
    assert (result["name"], result["detail"]) == ("failed", "The adapter failed: KeyError.")
    lab.refresh_from_db()
    assert lab.checked_at == NOON
    assert "scripted adapter failed" in caplog.text


def test_a_provider_that_hangs_is_given_up_by_the_worker(lab, provider):
    provider.error = SoftTimeLimitExceeded()
    poll_account(account=lab, now=NOON)
    lab.refresh_from_db()
    assert (lab.error_kind, lab.error_detail) == ("unavailable", "Reading the provider took longer than it may.")


def test_a_refused_key_is_a_failed_check_without_the_key(lab, provider):
    provider.error = AuthFailed(f"no such key {SECRET}")
    (result,) = run_checks(account=lab, now=NOON)
    assert (result["name"], result["kind"], result["detail"]) == ("failed", "auth_failed", "no such key •••")
