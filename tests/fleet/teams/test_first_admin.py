from __future__ import annotations

import pytest

from fleet.teams.models import AuditEntry, Membership, User
from fleet.teams.people import create_first_admin

pytestmark = pytest.mark.django_db


def test_a_fresh_installation_gets_an_admin_with_a_team_of_their_own():
    first = create_first_admin()
    assert first is not None
    assert (first.username, first.team_slug) == ("admin", "my-team")
    assert Membership.objects.get().role == "admin"


def test_the_generated_password_signs_in(client):
    first = create_first_admin()
    assert first
    answer = client.post("/login/", {"username": "admin", "password": first.password})
    assert answer.headers["Location"] == "/"
    assert client.get("/").headers["Location"] == "/t/my-team/"


def test_a_given_password_is_kept():
    first = create_first_admin(password="chosen by the operator")
    assert first
    assert first.password == "chosen by the operator"
    assert User.objects.get().check_password("chosen by the operator")


def test_where_somebody_has_an_account_nothing_is_made(charlie):
    assert create_first_admin() is None
    assert not User.objects.filter(username="admin").exists()


def test_no_password_shows_in_a_log_line_or_the_audit_log():
    first = create_first_admin()
    assert first
    assert first.password not in repr(first)
    assert not any(first.password in f"{entry.old}{entry.new}" for entry in AuditEntry.objects.all())
