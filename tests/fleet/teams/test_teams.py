from __future__ import annotations

import pytest

from fleet.teams.models import Membership, Team
from fleet.teams.teams import create_team


@pytest.mark.parametrize(
    ("name", "slug"), [("Vision Lab", "vision-lab"), ("视觉组", "team"), ("New", "new-2"), ("Acme", "acme-2")]
)
def test_a_team_gets_a_free_address(alice, by, name, slug):
    assert create_team(actor=by(alice), name=name).slug == slug


def test_anybody_signed_in_may_start_a_team_and_is_its_admin(vera, as_user):
    assert as_user(vera).post("/teams/new/", {"name": "Side project"}).headers["Location"] == "/t/side-project/"
    assert Membership.objects.get(user=vera, team__slug="side-project").role == "admin"


def test_a_name_of_one_letter_is_refused(vera, as_user):
    answer = as_user(vera).post("/teams/new/", {"name": "x"})
    assert answer.status_code == 422
    assert not Team.objects.filter(name="x").exists()


def test_every_page_of_a_team_leads_to_the_others(alice, rival, as_user):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    page = as_user(alice).get("/t/acme/settings/members/").text
    assert 'href="/t/sandbox/"' in page
    assert "/t/rival/" not in page


def test_who_is_in_no_team_is_told_what_to_do(rival, django_user_model, as_user):
    browser = as_user(django_user_model.objects.create_user("dora"))
    assert browser.get("/").headers["Location"] == "/teams/"
    assert "You are in no team yet" in browser.get("/teams/").text


def test_who_hides_the_sandbox_does_not_see_it_listed(alice, as_user):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    alice.hides_sandbox = True
    alice.save()
    assert "/t/sandbox/" not in as_user(alice).get("/t/acme/settings/").text
