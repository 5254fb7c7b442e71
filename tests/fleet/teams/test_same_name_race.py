"""Two people who choose the same name at the same moment: both get an answer that they can use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import connection

from fleet.teams import projects, teams
from fleet.teams.models import Project, Team


@pytest.fixture
def at_once(monkeypatch, as_user, transactional_db):
    """at_once(alice, bob, address) posts the same name from both browsers; the statuses, sorted.

    Each waits for the other after it has looked which addresses are free, or for half a second, if the other is not let so far.
    """
    together = Barrier(2)

    def meet(find):
        def found(*args):
            slug = find(*args)
            with suppress(BrokenBarrierError):
                together.wait(timeout=0.5)
            return slug

        return found

    monkeypatch.setattr(teams, "free_team_slug", meet(teams.free_team_slug))
    monkeypatch.setattr(projects, "free_project_slug", meet(projects.free_project_slug))

    def post(browser, address: str) -> int:
        try:
            return int(browser.post(address, {"name": "Vision"}).status_code)
        finally:
            connection.close()

    def run(first, second, address: str) -> list[int]:
        browsers = [as_user(first), as_user(second)]
        for browser in browsers:
            browser.raise_request_exception = False
        with ThreadPoolExecutor(2) as pool:
            return sorted(pool.map(lambda browser: post(browser, address), browsers))

    return run


def test_two_teams_of_one_name_get_an_address_each(at_once, alice, bob):
    assert at_once(alice, bob, "/teams/new/") == [302, 302]
    assert set(Team.objects.filter(name="Vision").values_list("slug", flat=True)) == {"vision", "vision-2"}


def test_the_second_project_of_a_name_is_refused_at_its_field(at_once, alice, acme):
    assert at_once(alice, alice, "/t/acme/settings/projects/new/") == [302, 422]
    assert Project.objects.filter(team=acme).count() == 1


def test_a_team_that_never_finds_a_free_address_is_told_so(alice, as_user, acme, monkeypatch):
    monkeypatch.setattr(teams, "free_team_slug", lambda name: acme.slug)
    answer = as_user(alice).post("/teams/new/", {"name": "Vision"})
    assert answer.status_code == 422
    assert "choose another name" in answer.text
