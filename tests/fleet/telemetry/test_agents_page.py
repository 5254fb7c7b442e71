"""Settings, Agents."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.models import AuditEntry
from fleet.telemetry.models import Agent, EnrolmentToken
from fleet.telemetry.views.agents import HEARD_WITHIN
from tests.fleet.telemetry.conftest import enrolled

PAGE = "/t/acme/settings/agents/"


@pytest.fixture
def agent(make_instance) -> Agent:
    return enrolled(make_instance(name="train-01"))[0]


def test_the_install_line_is_shown_once_and_its_token_works_for_one_machine(bob, as_user, settings):
    settings.PUBLIC_URL = "https://rackrent.example.org"
    browser = as_user(bob)
    answer = browser.post(f"{PAGE}tokens/", {"max_uses": 3, "hours": 24})
    assert answer.status_code == 201
    line = re.search(
        r"curl -fsSL https://rackrent.example.org/agent/install.sh \| sh -s -- --token (rre_[\w-]+)", answer.text
    )
    assert line
    token = EnrolmentToken.objects.get()
    assert (token.max_uses, token.created_by) == (3, bob)
    assert line[1] not in browser.get(PAGE).text
    assert AuditEntry.objects.filter(action="enrolment_token.create").exists()


def test_a_viewer_sees_agents_and_may_change_nothing(vera, agent, as_user):
    browser = as_user(vera)
    page = browser.get(PAGE)
    assert "train-01" in page.text
    assert "Make an install line" not in page.text
    for path in ("tokens/", f"{agent.pk}/interval/", f"{agent.pk}/pause/", f"{agent.pk}/end/", f"{agent.pk}/settle/"):
        assert browser.post(f"{PAGE}{path}").status_code == 403


def test_another_team_finds_nothing(charlie, agent, as_user):
    browser = as_user(charlie)
    assert browser.get(PAGE).status_code == 404
    assert "train-01" not in browser.get("/t/rival/settings/agents/").text
    assert browser.post(f"/t/rival/settings/agents/{agent.pk}/end/").status_code == 404


def test_reading_changes_nothing(bob, agent, as_user):
    for path in ("tokens/", f"{agent.pk}/interval/", f"{agent.pk}/pause/", f"{agent.pk}/end/", f"{agent.pk}/settle/"):
        assert as_user(bob).get(f"{PAGE}{path}").status_code == 405


def test_interval_pause_and_revocation_are_changed_and_recorded(bob, agent, as_user):
    browser = as_user(bob)
    browser.post(f"{PAGE}{agent.pk}/interval/", {"interval_seconds": "30"})
    browser.post(f"{PAGE}{agent.pk}/pause/", {"paused": "1"})
    agent.refresh_from_db()
    assert (agent.interval_seconds, agent.report_seconds, agent.paused) == (30, 30, True)
    browser.post(f"{PAGE}{agent.pk}/end/")
    agent.refresh_from_db()
    assert agent.revoked_at is not None
    actions = (
        AuditEntry.objects.filter(target_id=str(agent.instance_id)).order_by("pk").values_list("action", flat=True)
    )
    assert list(actions) == ["agent.interval", "agent.pause", "agent.revoke"]


def test_an_interval_that_is_not_offered_is_refused(bob, agent, as_user):
    answer = as_user(bob).post(f"{PAGE}{agent.pk}/interval/", {"interval_seconds": "3"}, follow=True)
    assert "Choose one of the intervals offered." in answer.text
    agent.refresh_from_db()
    assert agent.interval_seconds == 5


def test_the_page_says_why_rented_machines_cannot_report(bob, as_user, settings):
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    page = as_user(bob).get(PAGE).text
    assert "Rented machines cannot report here" in page
    assert "Set PUBLIC_URL" in page


def test_what_an_agent_says_is_escaped(bob, agent, as_user):
    hostile = "<img src=x onerror=alert(1)>"
    Agent.objects.filter(pk=agent.pk).update(
        hostname=hostile, version=hostile[:40], nvml_state="<b>x</b>", dropped_values={hostile: 3}
    )
    page = as_user(bob).get(PAGE).text
    assert "<img" not in page
    assert "<b>x</b>" not in page


@pytest.fixture
def listed(acme) -> Instance:
    cloud = ProviderAccount.objects.create(team=acme, kind="aws", name="Cloud")
    return Instance.objects.create(team=acme, account=cloud, external_id="i-0abc", name="listed", state="running")


def test_a_conflict_is_shown_and_settled_by_a_person(bob, agent, listed, as_user):
    Agent.objects.filter(pk=agent.pk).update(match_conflict="taken", provider_ids={"aws_instance_id": "i-0abc"})
    former, _ = enrolled(listed)
    browser = as_user(bob)
    page = browser.get(PAGE).text
    assert "The machine that its ids name has another agent already." in page
    browser.post(f"{PAGE}{agent.pk}/settle/", {"instance": listed.pk})
    moved = Agent.objects.get(instance=listed)
    assert (moved.pk, moved.match_conflict) == (agent.pk, "")
    assert not Agent.objects.filter(pk=former.pk).exists()
    assert Instance.objects.get(name="train-01").gone_at is not None


def test_a_machine_that_the_ids_do_not_name_is_never_taken(bob, agent, listed, as_user):
    Agent.objects.filter(pk=agent.pk).update(match_conflict="several", provider_ids={"aws_instance_id": "i-other"})
    answer = as_user(bob).post(f"{PAGE}{agent.pk}/settle/", {"instance": listed.pk}, follow=True)
    assert "do not name this machine" in answer.text
    assert Agent.objects.get(pk=agent.pk).instance_id != listed.pk


def test_a_conflict_can_be_kept_apart(bob, agent, as_user):
    Agent.objects.filter(pk=agent.pk).update(match_conflict="several")
    as_user(bob).post(f"{PAGE}{agent.pk}/settle/")
    agent.refresh_from_db()
    assert agent.match_conflict == ""


def test_only_agents_that_were_heard_just_now_report(alice, agent, make_instance, as_user):
    silent, _ = enrolled(make_instance(name="silent"))
    enrolled(make_instance(name="never"))
    Agent.objects.filter(pk=agent.pk).update(heartbeat_at=timezone.now())
    Agent.objects.filter(pk=silent.pk).update(heartbeat_at=timezone.now() - HEARD_WITHIN)
    assert "1 of 3 agents report" in as_user(alice).get(PAGE).text


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 30, "-1", "x"])
def test_a_machine_that_no_number_names_is_not_found(bob, agent, as_user, number):
    assert as_user(bob).post(f"{PAGE}{agent.pk}/settle/", {"instance": number}).status_code == 404


def test_a_copy_can_be_told_to_be_the_machine_whose_id_it_shows(bob, agent, make_instance, as_user):
    copy, _ = enrolled(make_instance(name="copy"))
    Agent.objects.update(machine_id="m1")
    Agent.objects.filter(pk=copy.pk).update(match_conflict="same_id")
    browser = as_user(bob)
    assert "has the same machine id" in browser.get(PAGE).text
    browser.post(f"{PAGE}{copy.pk}/settle/", {"instance": agent.instance_id})
    assert Agent.objects.get().instance_id == agent.instance_id
