from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from fleet.teams.models import AuditEntry, User

TYPED = "config.management.commands.password.getpass"


@pytest.fixture(autouse=True)
def _servers_are_up(settings) -> None:
    settings.EMBEDDED_DATABASE = settings.EMBEDDED_BROKER = False


def printed_password(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.strip().rpartition(": ")[2]


def test_the_only_person_needs_no_name(alice: User, capsys: pytest.CaptureFixture[str]):
    call_command("password")
    alice.refresh_from_db()
    assert alice.check_password(printed_password(capsys))


def test_a_name_is_asked_for_where_there_are_several(alice: User, bob: User):
    with pytest.raises(CommandError, match="There is: alice, bob"):
        call_command("password")


def test_an_unknown_name_is_refused(alice: User):
    with pytest.raises(CommandError, match="There is: alice"):
        call_command("password", "mallory")


def test_it_ends_the_persons_sessions_and_is_on_record(alice: User, as_user):
    browser = as_user(alice)
    assert browser.get("/t/acme/").status_code == 200
    call_command("password", "alice")
    assert browser.get("/t/acme/").status_code == 302
    entry = AuditEntry.objects.get(action="person.password")
    assert (entry.actor_label, entry.target_label) == ("manage.py password", "alice")


def test_it_lifts_a_lock_out(alice: User, bob: User, client, capsys: pytest.CaptureFixture[str]):
    for _ in range(6):
        client.post("/login/", {"username": "alice", "password": "wrong"})
    call_command("password", "alice")
    client.post("/login/", {"username": "alice", "password": printed_password(capsys)})
    assert client.get("/t/acme/").status_code == 200


def test_a_typed_password_is_not_shown(alice: User, monkeypatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(TYPED, lambda prompt: "a long enough sentence")
    call_command("password", "alice", ask=True)
    alice.refresh_from_db()
    assert alice.check_password("a long enough sentence")
    assert "a long enough sentence" not in capsys.readouterr().out


def test_a_weak_one_is_refused(alice: User, monkeypatch):
    monkeypatch.setattr(TYPED, lambda prompt: "12345678")
    with pytest.raises(CommandError, match="too common"):
        call_command("password", "alice", ask=True)
