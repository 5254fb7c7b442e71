from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from config.runtime.local_agent import EnrolmentFailedError, LocalAgent, agent_environment
from fleet.teams.models import Team
from fleet.teams.secrets import new_token
from fleet.telemetry.models import Agent, EnrolmentToken


@pytest.fixture
def agent(tmp_path: Path) -> LocalAgent:
    return LocalAgent(directory=tmp_path, project=django_settings.BASE_DIR, web_url="http://127.0.0.1:1")


def test_a_machine_without_settings_is_not_enrolled(agent: LocalAgent, db):
    assert not agent.is_enrolled


@pytest.mark.parametrize("content", ["", "{", "{}"])
def test_damaged_settings_are_no_enrolment(agent: LocalAgent, content: str, db):
    agent.settings_file.write_text(content)
    assert not agent.is_enrolled


def test_a_token_counts_only_while_the_dashboard_knows_it(agent: LocalAgent, make_instance):
    token = new_token("rra")
    agent.settings_file.write_text(json.dumps({"token": token.secret}))
    states = [agent.is_enrolled]
    known = Agent.objects.create(instance=make_instance(), token_hash=token.hash, prefix=token.prefix)
    states.append(agent.is_enrolled)
    known.delete()
    states.append(agent.is_enrolled)
    assert states == [False, True, False]


def test_it_belongs_to_the_first_team_that_is_no_sandbox(agent: LocalAgent, acme: Team, rival: Team):
    Team.objects.filter(pk=acme.pk).update(is_sandbox=True)
    with pytest.raises(EnrolmentFailedError, match="refused"):
        agent.enrol()
    token = EnrolmentToken.objects.get()
    assert (token.team, token.max_uses) == (rival, 1)


def test_it_says_when_there_is_no_team(agent: LocalAgent, db):
    with pytest.raises(EnrolmentFailedError, match="no team yet"):
        agent.enrol()


def test_the_agent_inherits_none_of_the_dashboards_secrets(monkeypatch):
    for name in ("SECRET_KEY", "CREDENTIAL_KEYS", "DATABASE_URL", "REDIS_URL", "RACKRENT_ADMIN_PASSWORD"):
        monkeypatch.setenv(name, "a secret")
    monkeypatch.setenv("PATH", "/usr/bin")
    assert "a secret" not in agent_environment().values()
    assert agent_environment()["PATH"] == "/usr/bin"
