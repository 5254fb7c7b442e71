"""Valkey is away, the database is not: people still sign in, and guesses still count."""

from __future__ import annotations

import pytest
from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache

WRONG = {"username": "alice", "password": "wrong"}


@pytest.fixture
def no_cache():
    """Nobody listens at the address of the cache."""
    dead = RedisCache("redis://127.0.0.1:9/0", {"OPTIONS": {"socket_connect_timeout": 1}})
    earlier = caches["default"]
    caches["default"] = dead
    yield
    caches["default"] = earlier


def test_the_right_password_opens_the_page(alice, client, no_cache, caplog):
    answer = client.post("/login/", {"username": "alice", "password": "correct horse"})
    assert answer.status_code == 302
    assert client.get("/t/acme/").status_code == 200
    assert "Nothing is throttled" in caplog.text


def test_five_wrong_ones_lock_the_name_all_the_same(alice, client, no_cache):
    codes = [client.post("/login/", WRONG).status_code for _ in range(6)]
    assert codes == [422, 422, 422, 422, 429, 429]


def test_the_api_answers(alice, as_user, no_cache):
    assert as_user(alice).get("/api/v1/projects/").status_code == 200


def test_no_page_of_forms_fails_for_it(alice, as_user, no_cache):
    form = {"old": "wrong", "new": "another horse"}
    assert as_user(alice).post("/account/password/", form).status_code == 422
