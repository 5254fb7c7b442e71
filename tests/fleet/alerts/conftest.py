"""A machine that things happen to, and the messages that go out of that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.alerts import outbox
from fleet.alerts.models import Alert, AlertEvent
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.audit import Actor
from fleet.teams.models import User
from tests.fleet.alerts.fleet import TestFleet

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def minutes(count: float) -> datetime:
    """So many after noon."""
    return NOON + timedelta(minutes=count)


@pytest.fixture
def machine(make_instance) -> Instance:
    made: Instance = make_instance(name="train-01", gpus=8, price_per_hour=Decimal(24))
    return made


@pytest.fixture
def by() -> Callable[[User], Actor]:
    return lambda user: Actor(user, user.username, "page", "192.0.2.7")


@pytest.fixture
def heard(monkeypatch) -> list[AlertEvent]:
    """What was handed to the channels."""
    events: list[AlertEvent] = []
    monkeypatch.setattr(outbox, "receivers", [events.extend])
    return events


def told(alert: Alert) -> list[str]:
    """The kinds of events that somebody is told of, in their order."""
    return [event.kind for event in alert.events.order_by("pk") if not event.quiet]


def recorded(alert: Alert) -> list[str]:
    """All of them; those that nobody is told of with the reason."""
    return [f"{event.kind}:{event.quiet}" if event.quiet else event.kind for event in alert.events.order_by("pk")]


@pytest.fixture
def fleet(acme) -> TestFleet:
    """acme's machines."""
    return TestFleet(team=acme, now=NOON)


@pytest.fixture
def cloud(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="aws", name="Cloud", listed_at=NOON + timedelta(days=1))
