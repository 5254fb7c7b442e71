from __future__ import annotations

import pytest
import time_machine

from fleet.inventory.models import ProviderAccount
from fleet.telemetry.partitions import ensure_partitions
from tests.fleet.idle.watch.machines import NOW, History, ago, enrol


@pytest.fixture
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def cloud(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="aws", name="Cloud", listed_at=ago(seconds=20))


@pytest.fixture
def resting(db, frozen, cloud, make_instance):
    """resting(History(), name="b", …) is a machine that has been up for two days; what its history leaves out is rest. Not rolled up yet."""
    ensure_partitions(now=NOW)

    def make(history: History | None = None, *, gpus: int = 2, **fields):
        begun = {"started_at": ago(days=2), "state_since": ago(days=2), "last_seen_at": ago(seconds=20)}
        machine = make_instance(gpus=gpus, account=cloud, **{**begun, **fields})
        history = history or History()
        enrol(machine, interval_seconds=history.step.total_seconds())
        history.write(machine)
        return machine

    return make
