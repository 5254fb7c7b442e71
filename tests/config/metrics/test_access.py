"""Only METRICS_TOKEN opens /metrics; without it the page is closed to everybody, this machine included."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from config.checks import check_metrics_token
from fleet.teams.audit import Actor
from fleet.teams.models import Scope
from fleet.teams.tokens import create_token
from tests.config.metrics.conftest import TOKEN, ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("token", [None, "", TOKEN])
async def test_it_is_closed_until_a_token_is_set(settings, token):
    settings.METRICS_TOKEN = ""
    answer = await ask(token)
    assert answer.status_code == 403
    assert "rackrent_" not in answer.text
    assert "METRICS_TOKEN" in answer.text


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], "ü"])
async def test_a_wrong_token_gets_nothing(open_page, token):
    answer = await ask(token)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="Rackrent metrics"')
    assert "rackrent_" not in answer.text


async def test_a_teams_token_does_not_open_it(open_page, acme):
    make = sync_to_async(create_token)
    _row, new = await make(actor=Actor.system("test"), team=acme, name="x", scope=Scope.ADMIN)
    assert (await ask(new.secret)).status_code == 401


async def test_the_token_opens_it_by_whatever_name(open_page):
    answer = await ask()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert (await ask(method="POST")).status_code == 405


@pytest.mark.parametrize(
    ("token", "refused"), [("", 0), ("short", 1), ("x" * 23, 1), ("x" * 24, 0), ("x" * 30 + " y", 1)]
)
def test_a_token_that_could_be_guessed_is_refused(settings, token, refused):
    settings.METRICS_TOKEN = token
    assert [error.id for error in check_metrics_token()] == ["rackrent.E018"] * refused
