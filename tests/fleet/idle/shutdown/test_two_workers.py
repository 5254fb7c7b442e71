"""Several workers drive the same stops at once: PostgreSQL decides, and everything is done once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from fleet.alerts.models import AlertEvent
from fleet.idle.shutdown.driver import drive
from fleet.idle.shutdown.models import IdleStop
from fleet.inventory.operations.models import Operation

WORKERS = 4


def drive_at_once(now) -> None:
    barrier = Barrier(WORKERS)

    def worker(_number: int) -> None:
        try:
            barrier.wait(timeout=20)
            drive(now=now)
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(worker, range(WORKERS)))


@pytest.mark.django_db(transaction=True)
def test_they_begin_warn_and_order_once(room):
    for _beat in range(60):
        room.judge()
        drive_at_once(room.now)
        room.send()
        room.driver.step()
        if IdleStop.objects.get().stage == "stopped":
            break
        room.driver.wait(30)
    stop = IdleStop.objects.get()
    kinds = list(stop.events.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["warned", "grace", "prestop", "stopping", "ordered", "verifying", "stopped"]
    assert Operation.objects.count() == 1
    assert room.calls == [("stop", room.machine.external_id)]
    assert AlertEvent.objects.filter(kind="opened").count() == 1
