"""The API as a script meets it: over HTTP, from the process that serves everything."""

from __future__ import annotations

import httpx
import pytest

from fleet.teams.audit import Actor
from fleet.teams.models import Scope
from fleet.teams.tokens import create_token, revoke_token

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def token(acme):
    return create_token(actor=Actor.system("test"), team=acme, name="script", scope=Scope.READ)


def test_a_script_follows_the_pages_until_its_token_is_revoked(server, acme, token, make_instance):
    for number in range(5):
        make_instance(name=f"m{number}")
    row, new = token
    with httpx.Client(headers={"Authorization": f"Bearer {new.secret}"}) as script:
        names, link = [], f"{server.url}/api/v1/instances/?limit=2&ordering=-name"
        while link:
            answer = script.get(link).raise_for_status().json()
            names += [machine["name"] for machine in answer["results"]]
            link = answer["next"]
        assert names == ["m4", "m3", "m2", "m1", "m0"]
        revoke_token(actor=Actor.system("test"), token=row)
        refused = script.get(f"{server.url}/api/v1/instances/")
        assert (refused.status_code, refused.json()["error"]) == (401, "token_revoked")


def test_an_address_that_is_none_answers_json_and_no_redirect(server):
    answer = httpx.get(f"{server.url}/api/v1/instances")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
