from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connections
from django.test import RequestFactory
from django.utils import timezone

from fleet.teams.models import User

RIGHT = {"username": "alice", "password": "correct horse"}
WRONG = {"username": "alice", "password": "wrong"}


def is_signed_in(client):
    return client.get("/t/acme/").status_code == 200


def test_the_right_password_opens_the_page_that_was_asked_for(alice, client):
    answer = client.post("/login/", {**RIGHT, "next": "/t/acme/settings/"})
    assert answer.headers["Location"] == "/t/acme/settings/"
    assert is_signed_in(client)


def test_nobody_is_sent_to_another_site(alice, client):
    answer = client.post("/login/", {**RIGHT, "next": "https://evil.example/"})
    assert answer.headers["Location"] == "/"


def test_an_email_address_does_as_well(alice, client):
    client.post("/login/", {**RIGHT, "username": "ALICE@example.org"})
    assert is_signed_in(client)


def test_an_address_that_two_have_signs_in_neither(alice, client):
    User.objects.create_user("alicia", "alice@example.org", "correct horse")
    client.post("/login/", {**RIGHT, "username": "alice@example.org"})
    assert not is_signed_in(client)


def test_a_wrong_password_says_so_and_how_many_tries_are_left(alice, client):
    answer = client.post("/login/", WRONG)
    assert answer.status_code == 422
    assert "do not fit together. 4 tries left." in answer.text
    assert 'value="alice"' in answer.text


def test_a_name_that_nobody_has_gets_the_same_answer(alice, client):
    answers = [client.post("/login/", {**WRONG, "username": name}) for name in ("alice", "nobody")]
    assert answers[0].text.count("4 tries left") == answers[1].text.count("4 tries left") == 1


def test_it_takes_as_many_hashes_for_an_address_that_nobody_has(alice, client, monkeypatch):
    hashed = []
    encode = MD5PasswordHasher.encode

    def counting(*args):
        hashed.append(1)
        return encode(*args)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counting)
    counts = []
    for name in ("alice@example.org", "nobody@example.org"):
        hashed.clear()
        client.post("/login/", {**WRONG, "username": name})
        counts.append(len(hashed))
    assert counts[0] == counts[1] > 0


def test_without_staying_signed_in_the_session_ends_with_the_browser(alice, client):
    client.post("/login/", RIGHT)
    assert not client.cookies["sessionid"]["max-age"]
    client.post("/logout/")
    client.post("/login/", {**RIGHT, "stay": "on"})
    assert client.cookies["sessionid"]["max-age"] == 14 * 86_400


def test_the_fifth_wrong_password_locks_and_says_until_when(alice, client, time_machine):
    time_machine.move_to("2026-11-30T09:00:00Z", tick=False)
    answers = [client.post("/login/", WRONG) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [422, 422, 422, 422, 429]
    assert answers[-1].headers["Retry-After"] == "900"
    assert "in 15\xa0minutes, at 09:15 (UTC)" in answers[-1].text


def test_locked_means_locked_for_the_right_password_too(alice, client, time_machine):
    time_machine.move_to("2026-11-30T09:00:00Z", tick=False)
    for _ in range(5):
        client.post("/login/", WRONG)
    time_machine.move_to("2026-11-30T09:10:00Z", tick=False)
    answer = client.post("/login/", RIGHT)
    assert answer.status_code == 429
    assert "at 09:15 (UTC)" in answer.text, "a try during the lock must not move its end"
    time_machine.move_to("2026-11-30T09:15:01Z", tick=False)
    client.post("/login/", RIGHT)
    assert is_signed_in(client)


def test_the_lock_holds_for_name_and_address_together(alice, bob, client):
    for _ in range(5):
        client.post("/login/", WRONG)
    client.post("/login/", {**RIGHT, "username": "bob"})
    assert is_signed_in(client)
    client.post("/logout/")
    assert client.post("/login/", RIGHT, REMOTE_ADDR="192.0.2.77").status_code == 302


def test_the_lock_holds_for_everything_that_checks_a_password(alice, client):
    for _ in range(5):
        client.post("/login/", WRONG)
    request = RequestFactory().post("/api/v1/anything/")
    assert authenticate(request, **RIGHT) is None


async def test_the_lock_is_said_by_the_asynchronous_server_too(transactional_db, async_client):
    for _ in range(5):
        answer = await async_client.post("/login/", WRONG)
    await sync_to_async(connections.close_all)()
    assert answer.status_code == 429
    assert "locked" in answer.text


def test_many_names_from_one_address_are_slowed_down(db, client):
    codes = [client.post("/login/", {**WRONG, "username": f"n{n}"}).status_code for n in range(31)]
    assert codes[-2:] == [422, 429]


def test_a_closed_account_cannot_sign_in(alice, client):
    alice.is_active = False
    alice.save()
    assert client.post("/login/", RIGHT).status_code == 422


def test_the_password_is_in_no_table_of_tries(alice, client):
    from axes.models import AccessAttempt

    client.post("/login/", {**WRONG, "password": "s3cret-typed-wrong"})
    assert "s3cret-typed-wrong" not in repr(list(AccessAttempt.objects.values()))


@pytest.mark.parametrize("method", ["get", "post"])
def test_only_a_post_signs_out(alice, as_user, method):
    browser = as_user(alice)
    getattr(browser, method)("/logout/")
    assert is_signed_in(browser) == (method == "get")


def test_a_session_ends_after_fourteen_days(alice, client, time_machine):
    client.post("/login/", {**RIGHT, "stay": "on"})
    time_machine.move_to(timezone.now() + timedelta(days=14, minutes=1))
    assert not is_signed_in(client)
