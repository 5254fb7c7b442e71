"""Sorting and packing a day may take most of an hour each: never both at once, for workers are few."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from config.celery import app
from fleet.telemetry import tasks


@pytest.fixture
def runs(monkeypatch, db):
    """What ran, in order."""
    found: list[str] = []
    monkeypatch.setattr(tasks, "sort_closed_days", lambda **_: found.append("sort"))
    monkeypatch.setattr(tasks, "pack_old_days", lambda **_: found.append("pack"))
    cache.delete(tasks.LONG_WORK)
    yield found
    cache.delete(tasks.LONG_WORK)


def test_one_after_the_other(runs):
    tasks.sort_days()
    tasks.pack_days()
    assert runs == ["sort", "pack"]


def test_not_beside_each_other(runs):
    with tasks.long_work() as mine:
        assert mine
        tasks.sort_days()
        tasks.pack_days()
    assert runs == []
    tasks.pack_days()
    assert runs == ["pack"]


def test_one_that_fails_leaves_the_way_free(runs, monkeypatch):
    def fail(**_):
        raise ValueError

    monkeypatch.setattr(tasks, "sort_closed_days", fail)
    with pytest.raises(ValueError):
        tasks.sort_days()
    tasks.pack_days()
    assert runs == ["pack"]


def test_who_came_too_late_is_called_again_within_the_hour():
    for name in ("telemetry.sort_closed_days", "telemetry.pack_old_days"):
        assert len(app.conf.beat_schedule[name]["schedule"].hour) == 24
