from __future__ import annotations

import pytest

from fleet.teams.models import AuditEntry, BrowserSession, Membership, Role

PROFILE = {
    "username": "alice",
    "name": "Alice Liddell",
    "email": "alice@example.org",
    "language": "zh-hans",
    "time_zone": "Asia/Shanghai",
    "shows_sandbox": "on",
}


def test_a_person_says_who_they_are(alice, as_user):
    as_user(alice).post("/account/profile/", PROFILE)
    alice.refresh_from_db()
    assert (alice.display_name, alice.language, alice.time_zone) == ("Alice Liddell", "zh-hans", "Asia/Shanghai")
    assert AuditEntry.objects.get(action="person.update").new == {
        "first_name": "Alice Liddell",
        "language": "zh-hans",
        "time_zone": "Asia/Shanghai",
    }


def test_pages_follow_the_chosen_language_and_zone(alice, as_user):
    browser = as_user(alice)
    browser.post("/account/profile/", PROFILE)
    page = browser.get("/t/acme/settings/", headers={"Accept-Language": "en"}).text
    assert '<html lang="zh-hans">' in page
    assert 'data-zone="Asia/Shanghai"' in page


def test_the_switch_is_kept_in_the_account(alice, as_user):
    as_user(alice).post("/language/", {"language": "zh-hans", "next": "/account/"})
    assert '<html lang="zh-hans">' in as_user(alice).get("/account/").text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"time_zone": "Mars/Olympus"}, "No time zone has this name"),
        ({"email": "BOB@example.org"}, "Somebody else here uses this address"),
        ({"username": "Bob"}, "This user name is taken"),
        ({"language": "tlh"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_nothing_is_lost(alice, bob, as_user, typed, said):
    answer = as_user(alice).post("/account/profile/", {**PROFILE, **typed})
    assert answer.status_code == 422
    assert said in answer.text
    assert 'value="Alice Liddell"' in answer.text
    alice.refresh_from_db()
    assert not alice.first_name


def test_a_new_password_needs_the_old_one(alice, as_user):
    answer = as_user(alice).post("/account/password/", {"old": "a guess", "new": "a longer horse"})
    assert "That is not your present password." in answer.text
    alice.refresh_from_db()
    assert alice.check_password("correct horse")


def test_a_weak_password_is_refused(alice, as_user):
    answer = as_user(alice).post("/account/password/", {"old": "correct horse", "new": "12345"})
    assert answer.status_code == 422
    assert "too short" in answer.text


def test_a_new_password_keeps_this_browser_and_signs_the_others_out(alice, as_user):
    here, there = as_user(alice), as_user(alice)
    answer = here.post("/account/password/", {"old": "correct horse", "new": "a longer horse"})
    assert answer.headers["Location"] == "/account/"
    assert here.get("/account/").status_code == 200
    assert there.get("/account/").status_code == 302


def test_the_present_password_cannot_be_guessed_without_end(alice, as_user):
    browser = as_user(alice)
    codes = [
        browser.post("/account/password/", {"old": "a guess", "new": "a longer horse"}).status_code for _ in range(11)
    ]
    assert codes == [422] * 10 + [429]


def test_one_browser_is_signed_out_from_another(alice, as_user, announced):
    here, there = as_user(alice), as_user(alice)
    row = BrowserSession.objects.get(session_key=there.session.session_key)
    assert row.session_key not in here.get("/account/").text
    with announced() as users:
        here.post("/account/sessions/end/", {"session": row.public_id})
    assert users == [f"user.{alice.pk}"]
    assert there.get("/account/").status_code == 302
    assert here.get("/account/").status_code == 200


def test_nobody_ends_the_session_of_another(alice, bob, as_user):
    of_bob = as_user(bob)
    row = BrowserSession.objects.get(user=bob)
    as_user(alice).post("/account/sessions/end/", {"session": row.public_id})
    assert of_bob.get("/account/").status_code == 200


def test_all_others_at_once(alice, as_user):
    here, there = as_user(alice), as_user(alice)
    here.post("/account/sessions/end-others/")
    assert there.get("/account/").status_code == 302
    assert here.get("/account/").status_code == 200


def test_a_closed_account_is_out_of_every_team_and_every_browser(bob, as_user, announced):
    here, there = as_user(bob), as_user(bob)
    with announced() as users:
        here.post("/account/close/")
    assert f"user.{bob.pk}" in users
    assert there.get("/account/").status_code == 302
    assert not Membership.objects.filter(user=bob).exists()
    bob.refresh_from_db()
    assert not bob.is_active


def test_the_last_admin_cannot_close_their_account(alice, as_user):
    answer = as_user(alice).post("/account/close/", follow=True)
    assert "Make somebody else an admin first." in answer.text
    alice.refresh_from_db()
    assert alice.is_active
    assert Membership.objects.get(user=alice).role == Role.ADMIN
