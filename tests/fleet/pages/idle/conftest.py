from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.shutdown.models import IdleSaving, IdleStop, IdleStopEvent
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.plans.models import PlannedAction


@pytest.fixture
def judged():
    def write(instance, answer="idle", **fields):
        now = timezone.now()
        fields = {"since": now, "judged_at": now, "mode": "interactive", "window_minutes": 60, **fields}
        return IdleVerdictRow.objects.create(instance=instance, answer=answer, **fields)

    return write


@pytest.fixture
def policy(acme):
    return IdlePolicy.objects.create(team=acme, name="Nights", action="stop")


@pytest.fixture
def stop_of():
    """stop_of(machine, "grace", deadline=…) with an event of each stage of `events`, a minute apart, up to now."""

    def write(instance, stage, *, events=(), **fields):
        now = timezone.now()
        fields = {
            "team": instance.team,
            "policy_name": "Nights",
            "verb": "stop",
            "since": now,
            "price_per_hour": instance.price_per_hour,
            **fields,
        }
        stop = IdleStop.objects.create(instance=instance, stage=stage, **fields)
        for back, kind in enumerate(reversed(events)):
            IdleStopEvent.objects.create(stop=stop, at=now - timedelta(minutes=back), kind=kind)
        return stop

    return write


@pytest.fixture
def saving_of():
    """saving_of(machine, hours=3) ended just now and saved its price for three hours."""

    def write(instance, *, hours=3, price="8.00", grows=False, **fields):
        now = timezone.now()
        fields = {
            "since": now - timedelta(hours=hours),
            "counted_until": now,
            "until": None if grows else now,
            "most_until": now + timedelta(days=7),
            **fields,
        }
        return IdleSaving.objects.create(
            team=instance.team,
            instance=instance,
            gpu_count=instance.gpu_count,
            price_per_hour=None if price is None else Decimal(price),
            currency="USD",
            amount=0 if price is None else Decimal(price) * hours,
            **fields,
        )

    return write


@pytest.fixture
def plan_of():
    def write(instance, *, hours=2, **fields):
        fields = {"verb": "stop", "source": "schedule:1", "reason": "the nights", **fields}
        due = timezone.now() + timedelta(hours=hours)
        return PlannedAction.objects.create(team=instance.team, instance=instance, due_at=due, **fields)

    return write
