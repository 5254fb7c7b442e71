"""The settings pages ask the database the same few questions, however long their lists are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.teams.audit import record
from fleet.teams.invitations import create_invitation
from fleet.teams.models import Membership, Project, Role, Scope, User
from fleet.teams.tokens import create_token, revoke_token


@pytest.fixture
def add(acme, by):
    """add(7) makes one more of everything that the pages list, by a person of its own."""

    def add_one(number: int) -> None:
        user = User.objects.create_user(f"user{number}")
        Membership.objects.create(team=acme, user=user, role=Role.ADMIN)
        create_invitation(actor=by(user), team=acme, role=Role.VIEWER)
        create_token(actor=by(user), team=acme, name="x", scope=Scope.READ)
        revoke_token(actor=by(user), token=create_token(actor=by(user), team=acme, name="x", scope=Scope.READ)[0])
        Project.objects.create(team=acme, name=f"Project {number}", slug=f"project-{number}")
        record(actor=by(user), team=acme, action="machine.poke", target=user, new={"number": number})

    return add_one


@pytest.mark.parametrize("tab", ["", "members/", "projects/", "tokens/", "audit/", "audit.csv"])
def test_a_longer_list_takes_no_more_queries(tab, alice, add, as_user):
    browser = as_user(alice)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(f"/t/acme/settings/{tab}").status_code == 200
        return len(captured)

    add(0)
    # The first page fills what the strip keeps for a while.
    queries()
    few = queries()
    for number in range(1, 12):
        add(number)
    assert queries() == few
