from __future__ import annotations


def test_a_member_sees_the_overview(alice, as_user):
    response = as_user(alice).get("/t/acme/")
    assert response.status_code == 200
    assert "Overview" in response.text


def test_another_team_does_not_exist(acme, charlie, as_user):
    assert as_user(charlie).get("/t/acme/").status_code == 404


def test_a_stranger_is_asked_to_sign_in(acme, client):
    assert client.get("/t/acme/").headers["Location"] == "/login/?next=/t/acme/"
