from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from fleet.teams.models import APIToken, Membership, Role, Scope, Team
from tests.api.resources import LISTS, WRITABLE, first_detail

OPEN_TO_OTHERS = {"/api/v1/teams/"}


def test_a_stranger_is_refused_with_json(fleet, client, apart):
    for address in LISTS:
        with apart(address):
            answer = client.get(address)
            assert answer.status_code == 401
            assert answer.json()["error"] == "not_authenticated"
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Rackrent"'
            assert "Location" not in answer.headers


def test_an_admin_sees_every_list_and_row(fleet, alice, as_user, apart):
    client = as_user(alice)
    for address in LISTS:
        with apart(address):
            answer = client.get(address)
            assert answer.status_code == 200
            assert answer.json()["results"]
            assert client.get(first_detail(client, address)).status_code == 200


def test_an_admin_token_sees_every_list_and_row(fleet, acme, as_token, apart):
    client = as_token(acme, Scope.ADMIN)
    for address in LISTS:
        with apart(address):
            assert client.get(address).json()["results"]
            assert client.get(first_detail(client, address)).status_code == 200


def test_another_team_sees_nothing(fleet, alice, charlie, as_user, apart):
    owner, client = as_user(alice), as_user(charlie)
    for address in LISTS:
        with apart(address):
            row = first_detail(owner, address)
            own = client.get(address).json()["results"]
            assert [team["slug"] for team in own] == (["rival"] if address in OPEN_TO_OTHERS else [])
            assert client.get(row).status_code == 404
            assert client.get(address, {"team": "acme"}).status_code == 404


def test_a_token_of_another_team_sees_nothing(fleet, alice, rival, as_user, as_token, apart):
    owner, client = as_user(alice), as_token(rival, Scope.ADMIN)
    for address in LISTS:
        with apart(address):
            row = first_detail(owner, address)
            results = client.get(address).json()["results"]
            assert not [one for one in results if one.get("slug") == "acme" or "team" in one]
            assert client.get(row).status_code == 404
            assert client.get(address, {"team": "acme"}).status_code == 404


@pytest.mark.parametrize(("field", "error"), [("expires_at", "token_expired"), ("revoked_at", "token_revoked")])
def test_a_dead_token_is_refused(fleet, acme, as_token, apart, field, error):
    client = as_token(acme, Scope.ADMIN, **{field: timezone.now() - timedelta(seconds=1)})
    for address in LISTS:
        with apart(address):
            answer = client.get(address)
            assert (answer.status_code, answer.json()["error"]) == (401, error)


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_viewer_cannot_write(fleet, alice, vera, acme, as_user, as_token, apart, method):
    owner, viewers = as_user(alice), (as_user(vera), as_token(acme, Scope.READ))
    for address in LISTS:
        with apart(address):
            for target in (address, first_detail(owner, address)):
                for client in viewers:
                    answer = getattr(client, method)(target, {}, content_type="application/json")
                    assert answer.status_code == 403


def test_what_has_no_write_side_says_405_to_those_who_may_write(fleet, bob, alice, as_user, apart):
    admin, operator = as_user(alice), as_user(bob)
    for address in sorted(set(LISTS) - WRITABLE):
        with apart(address):
            client = admin if address == "/api/v1/audit/" else operator
            answer = client.post(address, {}, content_type="application/json")
            assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


def test_a_session_writes_only_with_the_csrf_token(fleet, alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post("/api/v1/instances/", {}, content_type="application/json")
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]


def test_the_audit_log_is_for_admins(fleet, bob, acme, as_user, as_token):
    for client in (as_user(bob), as_token(acme, Scope.OPERATE)):
        answer = client.get("/api/v1/audit/")
        assert (answer.status_code, answer.json()["error"]) == (403, "permission_denied")


def test_an_admin_elsewhere_reads_no_audit_log_here(fleet, alice, bob, rival, as_user):
    Membership.objects.create(team=rival, user=bob, role=Role.ADMIN)
    row = first_detail(as_user(alice), "/api/v1/audit/")
    client = as_user(bob)
    assert client.get("/api/v1/audit/").json()["results"] == []
    assert client.get("/api/v1/audit/", {"team": "acme"}).status_code == 403
    assert client.get(row).status_code == 404


def test_a_person_of_two_teams_sees_both_and_filters_by_one(fleet, alice, rival, charlie, as_user, as_token):
    Membership.objects.create(team=rival, user=alice, role=Role.VIEWER)
    client = as_user(alice)
    assert [team["slug"] for team in client.get("/api/v1/teams/").json()["results"]] == ["acme", "rival"]
    assert client.get("/api/v1/instances/", {"team": "rival"}).json()["results"] == []
    assert len(client.get("/api/v1/instances/", {"team": "acme"}).json()["results"]) == 2


def test_sandbox_machines_are_listed_only_when_asked_for(fleet, alice, as_user, make_instance):
    sandbox = Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    toy = make_instance(name="toy", team=sandbox)
    client = as_user(alice)
    names = [row["name"] for row in client.get("/api/v1/instances/").json()["results"]]
    assert "toy" not in names
    assert [row["name"] for row in client.get("/api/v1/instances/", {"team": "sandbox"}).json()["results"]] == ["toy"]
    assert client.get(f"/api/v1/instances/{toy.pk}/").status_code == 200
    assert client.delete(f"/api/v1/instances/{toy.pk}/?team=sandbox").status_code == 403


def test_who_has_left_the_team_sees_nothing_of_it(fleet, bob, as_user):
    client = as_user(bob)
    Membership.objects.filter(user=bob).delete()
    assert client.get("/api/v1/instances/").json()["results"] == []
    assert client.get(f"/api/v1/instances/{fleet.instance.pk}/").status_code == 404
    assert client.get("/api/v1/me/").json()["teams"] == []


@pytest.mark.parametrize("header", ["Bearer rrk_wrong", "Bearer", "Bearer a b", "Bearer \xff", "bearer rrk_x"])
def test_what_is_no_token_is_refused(db, header):
    answer = Client(headers={"Authorization": header}).get("/api/v1/teams/")
    assert (answer.status_code, answer.json()["error"]) == (401, "token_unknown")


def test_use_is_noted_once_a_minute(acme, make_token, time_machine):
    secret, token = make_token(acme)
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    seen = []
    for moment in ("2026-11-30T08:00:00Z", "2026-11-30T08:00:30Z", "2026-11-30T08:02:00Z"):
        time_machine.move_to(moment, tick=False)
        client.get("/api/v1/me/")
        seen.append(
            APIToken.objects.filter(pk=token.pk).values_list("last_used_at__minute", "last_used_at__second").get()
        )
    assert seen == [(0, 0), (0, 0), (2, 0)]


def test_me_tells_who_a_token_is(acme, as_token):
    told = as_token(acme, Scope.OPERATE).get("/api/v1/me/").json()
    assert told["user"] is None
    assert told["token"]["scope"] == "operate"
    assert [(team["slug"], team["role"]) for team in told["teams"]] == [("acme", "operator")]


def test_me_tells_who_a_person_is(bob, as_user):
    told = as_user(bob).get("/api/v1/me/").json()
    assert told["token"] is None
    assert told["user"]["username"] == "bob"
    assert [(team["slug"], team["role"]) for team in told["teams"]] == [("acme", "operator")]
