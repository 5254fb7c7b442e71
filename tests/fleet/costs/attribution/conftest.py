"""Machines that somebody pays for, and the moments at which the tests look at them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.attribution.rules import RuleSaid, add_rule
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def by():
    """by(alice) is alice acting on a page."""
    return lambda user: Actor(user, user.username, "page", "192.0.2.7")


@pytest.fixture
def machine(make_instance) -> Callable[..., Instance]:
    """machine("train-01") has been there since long before noon."""

    def make(name: str = "train-01", *, since: datetime = NOON - 100 * HOUR, **more: object) -> Instance:
        made: Instance = make_instance(name=name, first_seen_at=since, **more)
        return made

    return make


@pytest.fixture
def rule(acme, alice, by):
    """rule(name_pattern="train-*", project=project) is in force from noon on."""

    def make(*, now: datetime = NOON, **said: Any):
        return add_rule(actor=by(alice), team=acme, said=RuleSaid(**said), now=now)

    return make


def told(instance: Instance) -> list[tuple[float, float | None, str, str, str]]:
    """Every span: hours from noon to noon, project, owner and why."""
    rows = AttributionSpan.objects.filter(instance=instance).select_related("project", "owner").order_by("period")
    return [
        (
            (row.period.lower - NOON) / HOUR,
            None if row.period.upper is None else (row.period.upper - NOON) / HOUR,
            row.project.name if row.project else "",
            row.owner.username if row.owner else "",
            row.source,
        )
        for row in rows
    ]
