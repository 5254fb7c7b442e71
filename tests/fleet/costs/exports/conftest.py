"""A month of a team with everything that an export has to tell apart."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.test import Client

from fleet.costs.spend.models import Adjustment
from fleet.inventory.models import ProviderAccount
from fleet.states import GpuState
from tests.fleet.costs.seeding import spend_on

HOSTILE = "=HYPERLINK(\"http://x\",'a')"
NOVEMBER = (date(2026, 11, 1), date(2026, 12, 1))


@pytest.fixture
def adjust(acme):
    """adjust(account, "credit", "-5") is one that somebody typed, and that the day's sums hold."""

    def type_in(account, kind, amount, *, day=date(2026, 11, 5), currency="USD", made=None, **more):
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        found = Adjustment.objects.create(
            team=acme,
            account=account,
            amount=Decimal(amount),
            currency=currency,
            kind=kind,
            at=at,
            reason=f"{kind} of {amount}",
            created_at=made or at,
            **more,
        )
        spend_on(
            acme, day, amount, account=account, meter="adjustment", currency=currency, state=GpuState.UNKNOWN, **more
        )
        return found

    return type_in


@pytest.fixture
def lambda_account(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="lambda", name="Research", external_id="acct-77")


@pytest.fixture
def autodl(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="autodl", name="北京", currency="CNY")


@pytest.fixture
def month_of_money(acme, alice, project, lambda_account, autodl, make_instance, adjust):
    """Two currencies, a shared machine, spot, disks, a price that nobody told, a commitment, and every kind of adjustment."""
    big = make_instance(
        name="train-01", account=lambda_account, external_id="i-1", gpus=8, region="us-east-1", gpu_model="H100 SXM"
    )
    spot = make_instance(name=HOSTILE, account=autodl, external_id="i-2", gpus=1, gpu_model="RTX 4090")
    held = make_instance(name="i-3", account=lambda_account, external_id="i-3", gpus=2, instance_type="gpu_2x")
    third = Decimal("66.66666666666667")
    day = date(2026, 11, 2)
    spend_on(
        acme,
        day,
        third,
        instance=big,
        project=project,
        owner=alice,
        job="run-9",
        labels={"env": "prod"},
        market="on_demand",
        states={GpuState.WORKING: third - 20, GpuState.HELD_IDLE: 12, GpuState.STALLED: 8},
        gpu_seconds={GpuState.WORKING: 400_000.0},
        seconds=57_600.0,
    )
    spend_on(acme, day, "33.33333333333333", instance=big, idle_share=True, state=GpuState.FREE, seconds=28_800.0)
    spend_on(acme, day, "0.123456789", instance=big, project=project, meter="disk_running")
    spend_on(acme, day, "8.88", instance=spot, market="spot", currency="CNY", seconds=3_600.0)
    spend_on(acme, date(2026, 11, 3), 0, instance=spot, market="spot", currency="CNY", unpriced_seconds=86_400.0)
    spend_on(acme, date(2026, 11, 30), "0.40", instance=spot, meter="disk_stopped", currency="CNY")
    spend_on(acme, day, "3.10", instance=held, market="reserved")
    spend_on(acme, day, "10", account=lambda_account, meter="commitment", state=GpuState.UNKNOWN)
    spend_on(acme, date(2026, 11, 4), "10", account=lambda_account, meter="commitment", state=GpuState.UNKNOWN)
    spend_on(acme, day, "1.25", account=lambda_account, meter="egress", state=GpuState.UNKNOWN, seconds=0.0)
    for number, (kind, amount) in enumerate(
        (("usage", "2.5"), ("credit", "-5"), ("tax", "19"), ("purchase", "100"), ("correction", "-0.07")), start=5
    ):
        adjust(lambda_account, kind, amount, day=date(2026, 11, number))
    adjust(autodl, "refund", "-4", currency="CNY", day=date(2026, 11, 12), made=datetime(2026, 12, 3, tzinfo=UTC))
    return big, spot, held


@pytest.fixture
def download(as_user, vera):
    """download(format="focus") is the file of November as its rows, as any member gets it."""

    def get(**asked: str) -> list[dict[str, str]]:
        return rows_of(body_of(as_user(vera), {"month": "2026-11", **asked}))

    return get


def body_of(client: Client, asked: dict[str, str]) -> bytes:
    answer = client.get("/t/acme/costs/export/", asked)
    assert answer.status_code == 200, answer.status_code
    return answer.getvalue()


def rows_of(body: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
