"""Beat and worker cannot tell of their own death: the web process does."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
import redis
from django.core.cache import cache

from config import pulse
from config.watch import dead_parts, look
from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import Alert

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_pulses():
    cache.delete_many([pulse.BEAT, pulse.WORKER])
    yield
    cache.delete_many([pulse.BEAT, pulse.WORKER])


def test_what_lives_and_what_only_starts_is_no_trouble():
    now = time.time()
    assert dead_parts(now) == []
    pulse.note(pulse.BEAT, now - 20)
    assert dead_parts(now) == []


@pytest.mark.parametrize(("key", "part"), [(pulse.BEAT, "beat"), (pulse.WORKER, "worker")])
def test_a_dead_process_is_in_every_teams_inbox_once_until_it_works_again(acme, rival, key, part):
    now = time.time()
    pulse.note(key, now - 120)
    assert [trouble.part for trouble in look(now)] == [part]
    look(now + 15)
    assert {(alert.team, alert.cause, alert.severity) for alert in Alert.objects.all()} == {
        (acme, "rackrent.trouble", "urgent"),
        (rival, "rackrent.trouble", "urgent"),
    }
    assert [alert.events.count() for alert in Alert.objects.all()] == [1, 1]
    # That the rules are evaluated is the evidence: beat sent it and the worker does it.
    back = datetime.fromtimestamp(now, UTC) + timedelta(seconds=60)
    evaluate_team(team=acme, now=back)
    evaluate_team(team=acme, now=back + timedelta(seconds=40))
    assert not Alert.objects.get(team=acme).is_open


def test_a_broker_that_is_away_is_trouble_of_its_own(acme, monkeypatch):
    def away(*_arguments: object) -> float:
        raise redis.ConnectionError

    monkeypatch.setattr(pulse, "age_seconds", away)
    assert [trouble.part for trouble in look(time.time())] == ["broker"]
    assert Alert.objects.get().signals.get().detail == "broker"
