"""Open pages hear of each step of an operation, by the broker or by asking."""

from __future__ import annotations

import json

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.requests import request_stop
from fleet.teams.audit import Actor
from fleet.telemetry.live import channel_name


@pytest.fixture
def machine(acme, make_instance):
    lab = ProviderAccount.objects.create(team=acme, kind="sandbox", name="Lab", monitor_only=False)
    return make_instance(account=lab)


@pytest.fixture
def stop(machine, alice, monkeypatch, django_capture_on_commit_callbacks):
    """stop() asks for it and commits."""
    monkeypatch.setattr("fleet.inventory.operations.requests.hurry", lambda _pk: None)

    def ask():
        with django_capture_on_commit_callbacks(execute=True):
            return request_stop(actor=Actor(alice, "alice", "page"), instance=machine)

    return ask


def test_a_step_is_told_to_whoever_watches_the_machine(machine, stop):
    with redis.Redis.from_url(settings.REDIS_URL) as client, client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(channel_name(machine.pk))
        assert heard.get_message(timeout=5) is None
        operation = stop()
        message = json.loads(heard.get_message(timeout=5)["data"])
    assert (message["type"], message["machine"]) == ("operation", machine.pk)
    assert message["operation"]["id"] == operation.pk
    assert (message["operation"]["kind"], message["operation"]["state"]) == ("stop", "requested")


def test_a_broker_that_is_away_costs_nobody_the_act(stop, monkeypatch):
    def away():
        raise redis.ConnectionError

    monkeypatch.setattr("fleet.telemetry.live_operations.broker", away)
    assert stop().is_open


def test_a_page_without_a_socket_asks(machine, stop, as_user, vera, acme):
    since = timezone.now().timestamp() - 1
    operation = stop()
    answer = as_user(vera).get(f"/t/{acme.slug}/live/", {"since": since, "machines": machine.pk}).json()
    told = [message for message in answer["messages"] if message["type"] == "operation"]
    assert [message["operation"]["id"] for message in told] == [operation.pk]
