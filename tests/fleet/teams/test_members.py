from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.teams.errors import LastAdmin
from fleet.teams.invitations import create_invitation
from fleet.teams.members import change_role, remove_member
from fleet.teams.models import APIToken, AuditEntry, Invitation, Membership, Role, Scope
from fleet.teams.tokens import create_token, find_token


def of(user):
    return Membership.objects.get(user=user)


def test_everybody_in_the_team_sees_who_is_in_it(alice, vera, charlie, as_user):
    page = as_user(vera).get("/t/acme/settings/members/").text
    assert "alice@example.org" in page
    assert "charlie" not in page
    assert "/remove/" not in page


def test_an_admin_changes_a_role(alice, bob, as_user):
    as_user(alice).post(f"/t/acme/settings/members/{bob.pk}/role/", {"role": "admin"})
    assert of(bob).role == Role.ADMIN
    entry = AuditEntry.objects.get(action="member.role")
    assert (entry.target_label, entry.old, entry.new) == ("bob", {"role": "operator"}, {"role": "admin"})


def test_the_last_admin_stays(alice, bob, by, as_user):
    for attempt in (
        lambda: change_role(actor=by(alice), membership=of(alice), role=Role.VIEWER),
        lambda: remove_member(actor=by(alice), membership=of(alice)),
    ):
        with pytest.raises(LastAdmin):
            attempt()
    answer = as_user(alice).post("/t/acme/settings/leave/", follow=True)
    assert "Make somebody else an admin first." in answer.text
    assert of(alice).role == Role.ADMIN


def test_a_closed_account_does_not_count_as_an_admin(alice, bob, by):
    change_role(actor=by(alice), membership=of(bob), role=Role.ADMIN)
    bob.is_active = False
    bob.save()
    with pytest.raises(LastAdmin):
        remove_member(actor=by(alice), membership=of(alice))


def test_an_admin_may_go_when_another_stays(alice, bob, by, as_user):
    change_role(actor=by(alice), membership=of(bob), role=Role.ADMIN)
    assert as_user(alice).post("/t/acme/settings/leave/").headers["Location"] == "/"
    assert not Membership.objects.filter(user=alice).exists()


def test_who_is_removed_sees_nothing_at_the_next_request(alice, bob, as_user):
    browser = as_user(bob)
    assert browser.get("/t/acme/").status_code == 200
    as_user(alice).post(f"/t/acme/settings/members/{bob.pk}/remove/")
    assert browser.get("/t/acme/").status_code == 404


def test_open_connections_are_told(alice, bob, by, announced):
    with announced() as users:
        change_role(actor=by(alice), membership=of(bob), role=Role.VIEWER)
        remove_member(actor=by(alice), membership=of(bob))
    assert users == [f"user.{bob.pk}"] * 2


def test_what_a_person_made_goes_when_they_go(alice, bob, acme, by):
    of_bob, of_alice = (create_token(actor=by(user), team=acme, name="x", scope=Scope.READ)[1] for user in (bob, alice))
    create_invitation(actor=by(bob), team=acme, role=Role.VIEWER)
    remove_member(actor=by(alice), membership=of(bob))
    assert find_token(secret=of_bob.secret, now=timezone.now()) is None
    assert find_token(secret=of_alice.secret, now=timezone.now())
    assert Invitation.objects.get().revoked_at


def test_a_demoted_person_keeps_only_tokens_that_fit_the_new_role(alice, bob, acme, by):
    for scope in Scope:
        create_token(actor=by(bob), team=acme, name=scope, scope=scope)
    change_role(actor=by(alice), membership=of(bob), role=Role.VIEWER)
    assert [token.scope for token in APIToken.objects.filter(revoked_at=None)] == [Scope.READ]


def test_a_role_that_does_not_exist_is_refused(alice, bob, as_user):
    answer = as_user(alice).post(f"/t/acme/settings/members/{bob.pk}/role/", {"role": "owner"}, follow=True)
    assert "Choose one of the roles" in answer.text
    assert of(bob).role == Role.OPERATOR
