"""Sources that hang take neither every worker nor the turn of those that answer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.telemetry import tasks
from fleet.telemetry.sources import claims
from fleet.telemetry.sources.claims import CLAIM, claim_due, read_shard
from fleet.telemetry.sources.models import PrometheusSource

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def add(acme, now):
    """add(3): so many sources of acme that answered the last time, the first due the longest."""

    def make(number: int, *, team=acme, **fields):
        before = PrometheusSource.objects.count()
        told = {"url": "https://prometheus.example", "team": team, "last_ok_at": now, **fields}
        return [
            PrometheusSource.objects.create(
                **{"name": f"own-{before + n}", "next_read_at": now - timedelta(seconds=60 - n), **told}
            ).pk
            for n in range(number)
        ]

    return make


class Clock:
    """Of the monotonic kind; a reading takes the seconds that are told for it."""

    def __init__(self, monkeypatch, seconds: dict[int, float]) -> None:
        self.now = 0.0
        self.read: list[int] = []
        monkeypatch.setattr("fleet.telemetry.sources.claims.time.monotonic", lambda: self.now)

        def read_source(source_id, *, claim, ends):
            self.read.append(source_id)
            self.now += seconds.get(source_id, 0.1)
            PrometheusSource.objects.filter(pk=source_id, claim=claim).update(
                claim=None, next_read_at=timezone.now() + timedelta(hours=1)
            )

        monkeypatch.setattr(claims, "read_source", read_source)


def test_of_two_workers_one_gets_it(add, now):
    pks = add(2)
    (shard,) = claim_due(now=now, at_once=2)
    assert shard.proven == pks
    assert claim_due(now=now, at_once=2) == []


def test_so_many_shards_at_once_and_no_more(add, now, monkeypatch):
    monkeypatch.setattr(claims, "SHARD_SOURCES", 2)
    add(7)
    first = claim_due(now=now, at_once=2)
    assert [len(shard.proven) for shard in first] == [2, 2]
    assert claim_due(now=now, at_once=2) == []
    assert len(claim_due(now=now, at_once=3)) == 1


def test_a_worker_that_died_is_followed_by_another(add, now):
    add(1)
    (dead,) = claim_due(now=now, at_once=1)
    assert claim_due(now=now + CLAIM - timedelta(seconds=1), at_once=1) == []
    (shard,) = claim_due(now=now + CLAIM, at_once=1)
    assert shard.claim != dead.claim
    assert shard.proven == dead.proven


def test_twenty_that_hang_hold_up_no_other_team(add, now, rival, monkeypatch):
    hanging = add(20, failures=3)
    (good,) = add(1, team=rival, next_read_at=now)
    clock = Clock(monkeypatch, dict.fromkeys(hanging, 30.0))
    (shard,) = claim_due(now=now, at_once=1)
    assert read_shard(shard) == 2
    assert clock.read == [good, hanging[0]]


def test_what_was_never_read_waits_behind_what_answers(add, now):
    new = add(3, last_ok_at=None)
    good = add(1)
    (shard,) = claim_due(now=now, at_once=1)
    assert (shard.proven, shard.doubtful) == (good, new)


def test_those_that_answer_leave_one_turn_to_those_that_did_not(add, now, monkeypatch):
    good, failed = add(4), add(3, failures=1)
    clock = Clock(monkeypatch, dict.fromkeys(good, 12.0))
    (shard,) = claim_due(now=now, at_once=1)
    read_shard(shard)
    assert clock.read == [*good[:3], failed[0]]


def test_one_teams_second_waits_for_every_teams_first(add, now, rival):
    own = add(3)
    (other,) = add(1, team=rival)
    (shard,) = claim_due(now=now, at_once=1)
    assert shard.proven == [own[0], other, *own[1:]]


def test_what_was_not_reached_is_due_at_once(add, now, monkeypatch):
    pks = add(3)
    Clock(monkeypatch, dict.fromkeys(pks, 30.0))
    (shard,) = claim_due(now=now, at_once=1)
    assert read_shard(shard) == 1
    (again,) = claim_due(now=timezone.now(), at_once=1)
    assert again.proven == pks[1:]


def test_the_beat_holds_to_the_setting(add, settings, monkeypatch):
    add(3)
    monkeypatch.setattr(claims, "SHARD_SOURCES", 1)
    sent = []
    monkeypatch.setattr(tasks.read_sources, "apply_async", lambda arguments, **_more: sent.append(arguments))
    settings.SOURCES_AT_ONCE = 2
    assert tasks.dispatch_sources() == 2
    assert len(sent) == 2
    assert tasks.dispatch_sources() == 0
