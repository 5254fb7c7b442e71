from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.teams.errors import InvitationUnusable
from fleet.teams.invitations import accept_invitation, create_invitation, find_invitation
from fleet.teams.models import AuditEntry, Invitation, Membership, Role, User


@pytest.fixture
def invitation(alice, acme, by):
    """An open invitation and the path of its link."""
    made, new = create_invitation(actor=by(alice), team=acme, role=Role.OPERATOR)
    return made, f"/join/{new.secret}/"


def open_link(client, path):
    assert client.get(path).headers["Location"] == "/join/"
    return client.get("/join/")


def test_the_link_is_shown_once_and_only_its_hash_is_stored(alice, as_user):
    browser = as_user(alice)
    page = browser.post("/t/acme/settings/members/invite/", {"role": "viewer", "email": "dora@example.org"})
    assert page.status_code == 201
    assert "no-store" in page.headers["Cache-Control"]
    found = re.search(r"/join/(rri_[\w-]+)/", page.text)
    assert found
    secret = found.group(1)
    assert secret not in browser.get("/t/acme/settings/members/").text
    stored = Invitation.objects.get()
    assert secret not in repr(vars(stored)) + repr(list(AuditEntry.objects.values()))


def test_opening_the_link_changes_nothing(invitation, client):
    for _ in range(3):
        page = open_link(client, invitation[1])
    assert "Join Acme" in page.text
    invitation[0].refresh_from_db()
    assert invitation[0].accepted_at is None


def test_a_new_person_makes_an_account_and_is_in(invitation, client):
    open_link(client, invitation[1])
    answer = client.post("/join/", {"username": "dora", "email": "dora@example.org", "password": "a long enough one"})
    assert answer.headers["Location"] == "/t/acme/"
    assert client.get("/t/acme/").status_code == 200
    assert Membership.objects.get(user__username="dora").role == Role.OPERATOR


def test_somebody_with_an_account_joins_with_it(invitation, charlie, as_user):
    browser = as_user(charlie)
    open_link(browser, invitation[1])
    assert browser.post("/join/").headers["Location"] == "/t/acme/"
    assert Membership.objects.get(user=charlie, team__slug="acme").role == Role.OPERATOR


def test_who_has_to_sign_in_first_comes_back_to_the_invitation(invitation, charlie, client):
    page = open_link(client, invitation[1])
    assert 'href="/login/?next=/join/"' in page.text
    answer = client.post("/login/", {"username": "charlie", "password": "correct horse", "next": "/join/"})
    assert answer.headers["Location"] == "/join/"
    assert client.post("/join/").headers["Location"] == "/t/acme/"


def test_it_works_once(invitation, client, charlie, as_user):
    late = as_user(charlie)
    open_link(late, invitation[1])
    open_link(client, invitation[1])
    client.post("/join/", {"username": "dora", "password": "a long enough one"})
    assert late.post("/join/").status_code == 410
    assert open_link(late, invitation[1]).status_code == 410


def test_two_who_accept_at_the_same_moment_do_not_both_get_in(invitation, charlie, vera, by):
    now = timezone.now()
    same = find_invitation(token_hash=invitation[0].token_hash, now=now)
    Membership.objects.filter(user=vera).delete()
    assert same
    accept_invitation(actor=by(charlie), invitation=same, now=now)
    with pytest.raises(InvitationUnusable):
        accept_invitation(actor=by(vera), invitation=same, now=now)


def test_it_expires(invitation, client, time_machine):
    time_machine.move_to(timezone.now() + timedelta(days=7, seconds=1))
    assert open_link(client, invitation[1]).status_code == 410


def test_a_withdrawn_link_is_dead(invitation, alice, as_user, client):
    as_user(alice).post(f"/t/acme/settings/invitations/{invitation[0].pk}/withdraw/")
    assert open_link(client, invitation[1]).status_code == 410
    assert AuditEntry.objects.filter(action="invitation.revoke", actor=alice).exists()


def test_a_member_does_not_use_it_up(invitation, bob, as_user):
    browser = as_user(bob)
    open_link(browser, invitation[1])
    answer = browser.post("/join/")
    assert answer.status_code == 409
    assert "in this team already" in answer.text
    invitation[0].refresh_from_db()
    assert invitation[0].accepted_at is None


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"username": "dora", "password": "password"}, "too common"),
        ({"username": "ALICE", "password": "a long enough one"}, "taken"),
        ({"username": "dora", "email": "Alice@example.org", "password": "a long enough one"}, "else here uses"),
        ({"username": "<b>", "password": "a long enough one"}, "valid username"),
    ],
)
def test_what_cannot_be_an_account_is_said_at_its_field(invitation, client, typed, said):
    open_link(client, invitation[1])
    answer = client.post("/join/", {"email": "dora@example.org", **typed})
    assert answer.status_code == 422
    assert said in answer.text
    assert f'value="{typed.get("email", "dora@example.org")}"' in answer.text
    assert not User.objects.filter(username=typed["username"]).exists()
    assert not User.objects.filter(email="dora@example.org").exists()
    invitation[0].refresh_from_db()
    assert invitation[0].accepted_at is None


def test_without_a_link_there_is_nothing_to_join(client, db):
    assert client.get("/join/").status_code == 410


def test_the_form_cannot_be_sent_without_end(invitation, client):
    open_link(client, invitation[1])
    codes = [client.post("/join/", {"username": "", "password": ""}).status_code for _ in range(21)]
    assert codes == [422] * 20 + [429]


def test_joining_is_in_the_audit_log(invitation, charlie, by):
    accept_invitation(actor=by(charlie), invitation=invitation[0], now=timezone.now())
    entry = AuditEntry.objects.get(action="member.join")
    assert (entry.actor, entry.ip_address, entry.new) == (charlie, "192.0.2.7", {"role": "operator"})
