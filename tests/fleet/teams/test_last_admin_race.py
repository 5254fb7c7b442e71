"""Two admins who remove each other at the same moment: one of them stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, transaction

from fleet.teams.errors import LastAdmin
from fleet.teams.members import change_role, remove_member
from fleet.teams.models import Membership, Role, Team


def of(user):
    return Membership.objects.select_related("team", "user").get(user=user)


@pytest.fixture
def two_admins(transactional_db, alice, bob):
    Membership.objects.filter(user=bob).update(role=Role.ADMIN)
    return of(alice), of(bob)


def remove(actor, membership):
    remove_member(actor=actor, membership=membership)


def demote(actor, membership):
    change_role(actor=actor, membership=membership, role=Role.VIEWER)


@pytest.mark.parametrize("act", [remove, demote])
def test_one_stays(act, two_admins, alice, bob, acme, by):
    together = Barrier(3)

    def attempt(actor, membership) -> str:
        try:
            together.wait(timeout=20)
            act(actor, membership)
        except LastAdmin:
            return "refused"
        finally:
            connection.close()
        return "done"

    # The team's row is held until both have come as far as it, so that they do meet.
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            Team.objects.select_for_update().get(pk=acme.pk)
            tries = [
                pool.submit(attempt, by(actor), membership)
                for actor, membership in zip((bob, alice), two_admins, strict=True)
            ]
            together.wait(timeout=20)
        outcomes = sorted(one.result(timeout=20) for one in tries)
    assert outcomes == ["done", "refused"]
    assert Membership.objects.filter(team=acme, role=Role.ADMIN).count() == 1
