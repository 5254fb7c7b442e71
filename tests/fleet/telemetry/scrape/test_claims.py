"""Who reads a target: one worker at a time, and another one after it has died."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import Q
from django.utils import timezone

from fleet.providers.base import InstanceState
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape import plan
from fleet.telemetry.scrape.plan import CLAIM, Job, claim_due, claim_targets, jobs_of, next_scrape_at
from fleet.telemetry.scrape.run import note, scrape_claim
from fleet.telemetry.scrape.shard import Outcome
from fleet.telemetry.tasks import dispatch_scrapes, scrape_shard

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def make_target(make_instance):
    def make(name: str = "a", *, machine: dict[str, object] | None = None, **fields: object) -> ScrapeTarget:
        given = {"next_scrape_at": NOW - timedelta(seconds=1), **fields}
        instance = make_instance(name=name, **(machine or {}))
        return ScrapeTarget.objects.create(instance=instance, url=f"http://203.0.114.7/{name}", **given)

    return make


def test_a_due_target_is_claimed_once(make_target):
    target = make_target()
    (claim,) = claim_due(now=NOW)
    assert claim_due(now=NOW) == []
    assert [job.target_id for job in jobs_of(claim, now=NOW)] == [target.pk]


def test_of_two_that_want_it_one_gets_it(make_target):
    ids = [make_target().pk]
    due = Q(next_scrape_at__lte=NOW)
    assert claim_targets(ids, now=NOW, due=due) is not None
    assert claim_targets(ids, now=NOW, due=due) is None


def test_a_claim_whose_worker_died_runs_out(make_target):
    make_target()
    (first,) = claim_due(now=NOW)
    (second,) = claim_due(now=NOW + CLAIM)
    assert jobs_of(first, now=NOW) == []
    assert len(jobs_of(second, now=NOW)) == 1


def test_what_was_read_under_a_lost_claim_is_not_noted(make_target):
    target = make_target()
    (first,) = claim_due(now=NOW)
    (job,) = jobs_of(first, now=NOW)
    claim_due(now=NOW + CLAIM)
    note([Outcome(job, "timeout", "8")], claim=first)
    target.refresh_from_db()
    assert (target.error, target.failures) == ("", 0)


def test_a_shard_delivered_twice_is_read_once(make_target):
    make_target()
    (claim,) = claim_due(now=NOW)
    ScrapeTarget.objects.update(claim=None)
    assert scrape_claim(claim) == []
    assert scrape_shard(str(claim)) == 0


@pytest.mark.parametrize(
    ("machine", "fields"),
    [
        ({}, {"enabled": False}),
        ({}, {"next_scrape_at": NOW + timedelta(seconds=1)}),
        ({"state": InstanceState.STOPPED}, {}),
        ({"state": InstanceState.TERMINATED}, {}),
        ({"gone_at": NOW}, {}),
    ],
)
def test_what_is_not_asked(make_target, machine, fields):
    make_target(machine=machine, **fields)
    assert claim_due(now=NOW) == []


def test_more_targets_are_more_shards(make_target, monkeypatch):
    monkeypatch.setattr(plan, "SHARD_TARGETS", 2)
    for number in range(5):
        make_target(f"m{number}")
    claims = claim_due(now=NOW)
    assert [len(jobs_of(claim, now=NOW)) for claim in claims] == [2, 2, 1]


def test_what_failed_is_read_behind_the_others_and_apart_from_them(make_target):
    make_target("dead", failures=1, next_scrape_at=NOW - timedelta(hours=1))
    good = make_target("good")
    first, second = claim_due(now=NOW)
    assert [job.target_id for job in jobs_of(first, now=NOW)] == [good.pk]
    assert len(jobs_of(second, now=NOW)) == 1


def test_the_beat_hands_every_claim_to_a_worker(make_target, monkeypatch):
    make_target()
    sent = []
    monkeypatch.setattr(scrape_shard, "apply_async", lambda args, **options: sent.append((args, options)))
    assert dispatch_scrapes() == 1
    (((claim,), options),) = sent
    assert claim == str(ScrapeTarget.objects.get().claim)
    assert options["expires"] < CLAIM.total_seconds()


def test_the_number_of_queries_does_not_grow(make_target, django_assert_num_queries):
    for number in range(6):
        make_target(f"m{number}")
    (claim,) = claim_due(now=NOW)
    with django_assert_num_queries(3):
        assert len(jobs_of(claim, now=NOW)) == 6


def test_the_wait_doubles_to_a_bound_and_varies():
    waits = {next_scrape_at(interval_seconds=30, failures=2, now=NOW) - NOW for _ in range(20)}
    assert len(waits) > 1
    assert all(timedelta(seconds=120) <= wait <= timedelta(seconds=132) for wait in waits)
    assert next_scrape_at(interval_seconds=30, failures=99, now=NOW) - NOW <= timedelta(seconds=330)


def test_a_token_is_in_no_repr():
    job = Job(1, 1, "http://x", "auto", "s3cret", 30, 0, {})
    assert "s3cret" not in repr(job)
    assert "s3cret" not in repr(Outcome(job))
