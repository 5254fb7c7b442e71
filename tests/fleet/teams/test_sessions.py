"""Sessions and what hangs on them end when membership or account does."""

from __future__ import annotations

import pytest

from fleet.teams.models import BrowserSession, Membership
from fleet.teams.people import change_password
from fleet.teams.sessions import end_sessions
from fleet.teams.standing import teams_still_seen


@pytest.fixture
def session_key(alice, as_user):
    return as_user(alice).session.session_key


def still_seen(session_key: str, slug: str = "acme") -> bool:
    return (session_key, slug) in teams_still_seen([(session_key, slug)])


def test_a_session_knows_whose_it_is_and_from_where(alice, client):
    client.post(
        "/login/", {"username": "alice", "password": "correct horse"}, REMOTE_ADDR="192.0.2.9", HTTP_USER_AGENT="Lynx"
    )
    session = BrowserSession.objects.get()
    assert (session.user, session.ip_address, session.user_agent) == (alice, "192.0.2.9", "Lynx")
    assert session.signed_in_at


def test_a_session_is_valid_for_the_own_team_only(session_key, rival):
    assert still_seen(session_key)
    assert not still_seen(session_key, "rival")
    assert not still_seen("made-up")


def test_it_ends_with_the_membership(alice, session_key):
    Membership.objects.filter(user=alice).delete()
    assert not still_seen(session_key)


def test_it_ends_with_the_account(alice, session_key):
    alice.is_active = False
    alice.save()
    assert not still_seen(session_key)


def test_it_ends_when_signed_out(alice, session_key):
    assert end_sessions(user=alice) == 1
    assert not still_seen(session_key)


def test_it_ends_when_the_password_is_set_from_elsewhere(alice, session_key):
    alice.set_password("set on the command line")
    alice.save()
    assert not still_seen(session_key)


def test_a_new_password_ends_the_others_and_tells_open_connections(alice, as_user, by, announced):
    here, there = as_user(alice), as_user(alice)
    with announced() as users:
        change_password(actor=by(alice), user=alice, password="a longer horse", keep_session=here.session.session_key)
    assert users == [f"user.{alice.pk}"]
    assert there.get("/t/acme/").status_code == 302
    assert BrowserSession.objects.get().session_key == here.session.session_key
