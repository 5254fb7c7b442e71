"""A source that has to catch up asks for less at a time where the answer would be too large, and arrives."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from fleet.telemetry.scrape.fetch import FetchError
from fleet.telemetry.sources import ask
from fleet.telemetry.sources import read as reading
from fleet.telemetry.sources.models import PrometheusSource
from fleet.telemetry.sources.read import LONGEST_STRETCH, SHORTEST_STRETCH, read_source
from tests.fleet.telemetry.store.fake import fake_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def limited(monkeypatch):
    """limited(seconds): a server whose answer is too large for more of them at once. Returns the stretches that were asked of it."""

    def limit(most_seconds: float) -> list[float]:
        asked = []

        async def ask_for(_source, _token, *, since, until):
            asked.append((until - since).total_seconds())
            if asked[-1] > most_seconds:
                raise FetchError("too_large", "64")
            return []

        monkeypatch.setattr(reading, "_ask", ask_for)
        return asked

    return limit


def read(source, *, ends=None):
    claim = uuid.uuid4()
    PrometheusSource.objects.filter(pk=source.pk).update(claim=claim)
    return read_source(source.pk, claim=claim, ends=ends)


def behind(source, **by: float) -> datetime:
    since = datetime.now(UTC) - timedelta(**by)
    PrometheusSource.objects.filter(pk=source.pk).update(read_until=since)
    return since


def test_an_outage_ends_although_ten_minutes_are_too_much(make_source, limited):
    source = make_source("http://127.0.0.1:9090")
    behind(source, minutes=25)
    asked = limited(200)
    assert read(source).code == ""
    assert asked[:3] == [600, 300, 150]
    source.refresh_from_db()
    assert datetime.now(UTC) - source.read_until < timedelta(minutes=1)
    assert (source.failures, source.error) == (0, "")


def test_each_turn_gets_further_however_little_time_it_has(make_source, limited):
    source = make_source("http://127.0.0.1:9090")
    since = behind(source, minutes=25)
    limited(40)
    assert read(source, ends=time.monotonic()).code == ""
    source.refresh_from_db()
    assert since < source.read_until < since + LONGEST_STRETCH
    assert source.next_read_at <= datetime.now(UTC)


def test_what_is_too_much_in_the_shortest_stretch_is_said(make_source, limited):
    source = make_source("http://127.0.0.1:9090")
    since = behind(source, minutes=25)
    asked = limited(0)
    outcome = read(source)
    assert (outcome.code, outcome.detail, outcome.read_until) == ("too_many", "64", since)
    assert asked[-1] == SHORTEST_STRETCH.total_seconds()


def test_an_answer_over_the_limit_is_not_read_to_its_end(make_source, monkeypatch):
    monkeypatch.setattr(ask, "MAX_BYTES", 100_000)
    with fake_store() as fake:
        fake.answer = b" " * 100_001 + fake.answer
        outcome = read(make_source(fake.url))
        assert outcome.code == "too_many"
        assert len(fake.asked) == 1


def test_both_questions_share_one_deadline(make_source, monkeypatch):
    async def never(*_args, **_more):
        await asyncio.Event().wait()

    monkeypatch.setattr(reading, "samples_between", never)
    monkeypatch.setattr(reading, "DEADLINE_SECONDS", 0.01)
    assert read(make_source("http://127.0.0.1:9090")).code == "timeout"
