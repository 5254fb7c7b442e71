"""Counted in the real cache."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.throttling import SimpleRateThrottle


@pytest.fixture
def rates(monkeypatch):
    """rates(token="2/minute") sets rates as the settings would."""

    def change(**wanted):
        monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", {**SimpleRateThrottle.THROTTLE_RATES, **wanted})

    return change


def codes(client: Client, count: int, address: str = "/api/v1/instances/") -> list[int]:
    return [client.get(address).status_code for _ in range(count)]


def test_a_token_is_told_to_wait(acme, as_token, rates):
    rates(token="2/minute")
    client = as_token(acme)
    assert codes(client, 3) == [200, 200, 429]
    answer = client.get("/api/v1/instances/")
    assert answer.json()["error"] == "throttled"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


def test_it_may_ask_again_when_the_time_is_over(acme, as_token, rates, time_machine):
    rates(token="1/minute")
    time_machine.move_to("2026-11-30T08:00:00Z", tick=False)
    client = as_token(acme)
    assert codes(client, 2) == [200, 429]
    time_machine.move_to("2026-11-30T08:01:01Z", tick=False)
    assert codes(client, 1) == [200]


def test_tokens_people_and_strangers_are_counted_apart(acme, alice, bob, as_token, as_user, client, rates):
    rates(token="1/minute", user="1/minute", anonymous="1/minute")
    for caller in (as_token(acme), as_token(acme), as_user(alice), as_user(bob)):
        assert codes(caller, 2) == [200, 429]
    assert codes(client, 2) == [401, 429]


def test_guessed_tokens_count_against_their_address(db, rates):
    rates(anonymous="2/minute")
    guesses = [Client(headers={"Authorization": f"Bearer rrk_{number}"}) for number in range(3)]
    assert [codes(guess, 1)[0] for guess in guesses] == [401, 401, 429]
    elsewhere = Client(headers={"Authorization": "Bearer rrk_9"}, REMOTE_ADDR="198.51.100.9")
    assert codes(elsewhere, 1) == [401]


def test_a_made_up_forwarded_address_is_not_believed(db, rates):
    rates(anonymous="1/minute")
    claims = [Client(headers={"X-Forwarded-For": f"203.0.113.{number}"}) for number in range(2)]
    assert [codes(claim, 1)[0] for claim in claims] == [401, 429]


def test_the_schema_is_counted_too(db, client, rates):
    rates(anonymous="1/minute")
    assert codes(client, 2, "/api/v1/schema/") == [200, 429]
