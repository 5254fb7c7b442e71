from __future__ import annotations

import pytest
from channels.layers import InMemoryChannelLayer

from fleet.teams.audit import Actor


@pytest.fixture
def by():
    """by(alice) is alice acting on a page."""
    return lambda user: Actor(user, user.username, "page", "192.0.2.7")


@pytest.fixture
def announced(monkeypatch, django_capture_on_commit_callbacks):
    """`with announced() as users:` collects whose open connections are told to check again."""
    from contextlib import contextmanager

    @contextmanager
    def collect():
        users: list[str] = []
        layer = InMemoryChannelLayer()

        async def group_send(group: str, message: dict[str, object]) -> None:
            assert message["type"] == "access.changed"
            users.append(group)

        monkeypatch.setattr(layer, "group_send", group_send)
        monkeypatch.setattr("fleet.teams.access.get_channel_layer", lambda: layer)
        with django_capture_on_commit_callbacks(execute=True):
            yield users

    return collect


@pytest.fixture(autouse=True)
def _no_throttles_left_over():
    """Counts of throttles lie in the cache, which outlives a test."""
    from django.core.cache import cache

    cache.clear()
