"""Whoever carries out planned acts dies between any two steps: nothing is lost and nothing is done twice. Nor by two at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from fleet.idle.planned import carrying, proving, steps
from fleet.inventory.operations import requests
from fleet.inventory.operations.models import Operation
from fleet.inventory.plans.models import PlannedAction
from fleet.teams.models import AuditEntry


class Killed(BaseException):
    """Nobody catches it, as nobody catches a SIGKILL."""


# (module, name): where the first to come there dies, before it is done or, with "after", when it was.
DEATHS = [
    (carrying, "is_held", "before"),
    (carrying, "order", "before"),
    (requests, "_begin", "before"),
    (requests, "_begin", "after"),
    (requests, "audit", "before"),
    (carrying, "take", "before"),
    (carrying, "take", "after"),
    (steps, "record", "before"),
    (proving, "settle", "before"),
    (proving, "finish", "before"),
    (proving, "finish", "after"),
    (steps, "untell", "before"),
    (steps, "clear_event", "before"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("module", "name", "when"), DEATHS)
def test_nothing_is_lost_or_doubled(plan, carry, driver, world, fresh, monkeypatch, module, name, when):
    action, real = plan(), getattr(module, name)
    died: list[str] = []

    def once(*args, **more):
        result = real(*args, **more) if when == "after" or died else None
        if not died:
            died.append(name)
            raise Killed
        return result

    monkeypatch.setattr(module, name, once)
    for minutes in (0, 5, 5):
        driver.run(minutes * 60)
        try:
            carry()
        except Killed:
            carry()
    assert died
    assert (fresh(action).state, world.calls) == ("done", [("stop", "m-1")])
    assert Operation.objects.count() == 1
    for verb in ("take", "done"):
        assert AuditEntry.objects.filter(action=f"planned_action.{verb}").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_at_once_order_once(plan, driver):
    action = plan()
    barrier = Barrier(4)

    def one(_number):
        try:
            barrier.wait(timeout=20)
            carrying.carry_out(action_id=action.pk, now=driver.now)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert PlannedAction.objects.get().state == "taken"
    assert (Operation.objects.count(), Operation.objects.get().idempotency_key) == (1, f"planned:{action.pk}")
