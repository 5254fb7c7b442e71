from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pytest

from fleet.costs.ledger.intervals import Meter
from fleet.idle.policies.models import IdleAction, IdlePolicy
from fleet.inventory.models import Instance
from fleet.telemetry.partitions import ensure_partitions
from tests.fleet.costs.spend.ledger_rows import charged
from tests.fleet.idle.dryrun.recording import listed

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def partitions(db):
    ensure_partitions(now=MONDAY + 15 * DAY, since=MONDAY - DAY)


@pytest.fixture
def rented(partitions, account, make_instance):
    """A machine that runs since long before at a price of the ledger, less a disk that goes on while it is stopped."""
    account.kind = "sandbox"
    account.save()

    def rent(name: str = "rp-h100-01", *, gpus: int = 2, price: str | None = "6.00", **fields: object) -> Instance:
        known = {"gpu_model": "H100 SXM", "storage_price_per_hour": Decimal("0.04"), "currency": "USD"}
        machine: Instance = make_instance(name=name, gpus=gpus, **{**known, **fields})
        listed(machine, MONDAY - 8 * DAY, provider_started_at=MONDAY - 9 * DAY)
        charged(machine, Meter.COMPUTE, MONDAY - 9 * DAY, None, price, currency=str(machine.currency))
        return machine

    return rent


@pytest.fixture
def policy(acme):
    """Stops after an hour and half an hour of grace; a wrong stop costs twenty minutes of all GPUs."""
    return IdlePolicy.objects.create(
        team=acme, name="Training nodes", window_minutes=60, grace_minutes=30, action=IdleAction.STOP, accept_loss=True
    )


@pytest.fixture
def office(policy):
    policy.office_days, policy.office_from, policy.office_until = [0, 1, 2, 3, 4], time(9), time(19)
    policy.time_zone = "Europe/Berlin"
    policy.save()
    return policy
