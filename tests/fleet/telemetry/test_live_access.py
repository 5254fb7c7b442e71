"""Access of all open sockets is checked in one go, and the number of queries does not grow with them."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from fleet.teams.access import announce_access_change
from fleet.teams.models import Membership, Role, Team
from fleet.telemetry import live_access, live_rounds
from fleet.telemetry.live_access import Watch, machines_of_watches
from tests.conftest import member
from tests.fleet.telemetry.browsers import connected


@pytest.fixture
def session_of(as_user):
    return lambda user: as_user(user).session.session_key


def queries_for(watches: list[Watch]) -> int:
    with CaptureQueriesContext(connection) as captured:
        machines_of_watches(watches)
    return len(captured)


@pytest.mark.django_db
def test_each_page_gets_what_it_may_see(make_instance, acme, rival, alice, vera, charlie, session_of):
    first, second = make_instance(name="first"), make_instance(name="second")
    gone = make_instance(name="gone", gone_at="2026-01-01T00:00Z")
    hers, his = session_of(vera), session_of(charlie)
    asked = {
        Watch(hers, "acme", None): {first.pk, second.pk},
        Watch(hers, "acme", frozenset({second.pk})): {second.pk},
        Watch(hers, "acme", frozenset()): set(),
        Watch(hers, "acme", frozenset({first.pk, gone.pk})): None,
        Watch(hers, "rival", None): None,
        Watch(his, "rival", None): set(),
        Watch(his, "rival", frozenset({first.pk})): None,
        Watch(his, "acme", frozenset({first.pk})): None,
        Watch("made-up", "acme", None): None,
        Watch("", "nowhere", None): None,
    }
    assert machines_of_watches(list(asked)) == list(asked.values())


@pytest.mark.django_db
def test_everybody_may_look_at_the_sandbox(make_instance, charlie, session_of):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    assert machines_of_watches([Watch(session_of(charlie), "sandbox", None)]) == [set()]


@pytest.mark.django_db
def test_a_large_team_is_heard_of_as_far_as_the_limit(make_instance, vera, session_of, monkeypatch):
    machines = sorted(make_instance(name=f"m{n}").pk for n in range(3))
    monkeypatch.setattr(live_access, "MAX_MACHINES", 2)
    assert machines_of_watches([Watch(session_of(vera), "acme", None)]) == [set(machines[:2])]


@pytest.mark.django_db
def test_the_number_of_queries_does_not_grow_with_the_pages(make_instance, acme, rival, vera, charlie, session_of):
    machine = make_instance()
    few = [Watch(session_of(vera), "acme", None), Watch(session_of(charlie), "rival", frozenset({machine.pk}))]
    many = [*few]
    for number in range(20):
        key = session_of(member(f"reader-{number}", (acme, rival)[number % 2], Role.VIEWER))
        many += [Watch(key, ("acme", "rival")[number % 2], None), Watch(key, "acme", frozenset({machine.pk}))]
    assert queries_for(many) == queries_for(few) == 6


@pytest.fixture
def rounds_counted(monkeypatch):
    """How many pages each look at the database was for; looks happen only when announced."""
    monkeypatch.setattr(live_rounds, "CHECK_SECONDS", 3600)
    looks: list[int] = []
    look = live_access.watched_machines

    async def counted(watches):
        looks.append(len(watches))
        return await look(watches)

    monkeypatch.setattr(live_rounds, "watched_machines", counted)
    return looks


@pytest.mark.django_db(transaction=True)
async def test_one_look_ends_all_pages_of_a_person_and_leaves_the_others(machine, alice, vera, page_of, rounds_counted):
    hers = [await connected(await page_of(vera)) for _ in range(5)]
    other = await connected(await page_of(alice))
    for page in [*hers, other]:
        await page.subscribe(team="acme")
    await Membership.objects.filter(user=vera).adelete()
    await live_rounds.rounds_here().check()
    assert [await page.code_of_close() for page in hers] == [4403] * 5
    assert await other.receive_nothing()
    assert rounds_counted == [6]


@pytest.mark.django_db(transaction=True)
async def test_an_announcement_that_many_pages_hear_is_one_look(machine, vera, page_of, rounds_counted):
    pages = [await connected(await page_of(vera)) for _ in range(5)]
    for page in pages:
        await page.subscribe(team="acme")
    await Membership.objects.filter(user=vera).adelete()
    await sync_to_async(announce_access_change)(vera)
    assert [await page.code_of_close() for page in pages] == [4403] * 5
    # A page may hear of it while the look for another one is under way; that is one more, of those that are left.
    assert rounds_counted[0] == 5
    assert len(rounds_counted) <= 2


@pytest.mark.django_db(transaction=True)
async def test_what_cannot_be_checked_is_not_shown(machine, vera, page_of, monkeypatch):
    monkeypatch.setattr(live_rounds, "CHECK_SECONDS", 3600)
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")

    async def away(_watches):
        raise DatabaseError("gone")

    monkeypatch.setattr(live_rounds, "watched_machines", away)
    await live_rounds.rounds_here().check()
    assert await page.code_of_close() == live_rounds.TRY_LATER
