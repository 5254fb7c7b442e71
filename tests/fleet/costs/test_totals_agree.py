"""The same month everywhere: pages, the API, files and the tables themselves say one total."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow.parquet
import pytest
import time_machine
from django.test import Client

from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.models import Adjustment, ExchangeRate
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import By, Sum, Where, spend
from fleet.costs.spend.tally import add_up
from fleet.formats import whole_money_text
from fleet.inventory.models import ProviderAccount
from fleet.states import GpuState
from tests.fleet.costs.spend.ledger_rows import at, belongs, charged, rolled

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOVEMBER, DECEMBER = date(2026, 11, 1), date(2026, 12, 1)


@pytest.fixture(autouse=True)
def noon() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def month(acme, account, project, bob, make_instance):
    """Three weeks of two machines and a volume in Berlin: prices, states, currencies, owners and rates that change, and a refund."""
    acme.time_zone = "Europe/Berlin"
    acme.save()
    one = make_instance(name="train-01", gpus=2, gpu_model="H100", labels={"stage": "train"})
    far = ProviderAccount.objects.create(team=acme, kind="autodl", name="Far", currency="CNY")
    two = make_instance(name="serve-01", gpus=1, account=far, external_id="serve-01", currency="CNY")
    charged(one, "compute", at("2026-10-20 07:13"), at("2026-11-07 22:41"), "3.3333333333", market="spot")
    charged(one, "compute", at("2026-11-07 22:41"), None, "2.7", market="spot")
    charged(one, "disk_running", at("2026-10-20 07:13"), None, "0.07", unit="gb_month", quantity="333")
    charged(two, "compute", at("2026-11-02 10:10"), at("2026-11-12 01:01"), "8.88", currency="CNY")
    charged(two, "disk_stopped", at("2026-11-12 01:01"), None, "0.35", unit="gb_month", quantity="77", currency="CNY")
    charged(two, "compute", at("2026-11-15 00:00"), at("2026-11-15 06:00"), None, currency="CNY", run=2)
    charged(account, "network_volume", at("2026-11-03 00:00"), None, "0.05", unit="gb_month", quantity="1000")
    charged(account, "licence", at("2026-11-01 00:00"), at("2026-12-01 00:00"), "99", currency="EUR", unit="month")
    belongs(one, at("2026-11-05 00:00"), None, project=project, owner=bob, labels={"stage": "train"})
    for number, gpu in enumerate(one.gpus.all()):
        for hour in range(24):
            rolled(gpu, at(f"2026-11-06 {hour:02}:00"), working=1000 + 700 * number, held=700, stalled=77)
    Adjustment.objects.create(
        team=acme,
        account=account,
        instance=one,
        at=at("2026-11-09 09:00"),
        amount="-12.34",
        currency="USD",
        kind="refund",
        reason="x",
    )
    for day, rate in ((date(2026, 10, 1), "0.1401"), (date(2026, 11, 9), "0.1389")):
        ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=day, rate=rate)
    sum_costs(now=NOW)
    return acme


def asked(team: Any, **more: Any) -> Any:
    return spend(team=team, start=NOVEMBER, end=DECEMBER, label="stage", **more)


def money_of(found: Sum) -> Sum:
    """To the last digit. Seconds are floats, which differ in theirs when they are added up in another order."""
    return replace(found, gpu_seconds={}, unpriced_seconds=round(found.unpriced_seconds, 3))


def test_every_dimension_and_every_table_says_the_same(month, subtests):
    assert verify_sums(month) == []
    whole = asked(month, by=[By.DAY]).all
    assert whole.total > 1000
    assert set(whole.unconverted) == {"EUR"}
    for by in By:
        for more in ([], [By.DAY], [By.MACHINE], [By.DAY, By.MACHINE]):
            with subtests.test(by=by, more=more):
                found = asked(month, by=[by, *(one for one in more if one != by)])
                assert money_of(found.all) == money_of(whole)
                assert found.all.gpu_seconds == pytest.approx(whole.gpu_seconds)
                assert add_up([one.total for one in found.rows.values()]) == whole.total
                assert (
                    add_up([one.unconverted.get("EUR", Decimal(0)) for one in found.rows.values()])
                    == whole.unconverted["EUR"]
                )


def test_parts_of_the_team_add_up_to_it(month, project, bob):
    whole = asked(month).all.total
    for one, other in (
        ({"projects": (project.pk,)}, {"projects": (None,)}),
        ({"owners": (bob.pk,)}, {"owners": (None,)}),
    ):
        parts = [asked(month, where=Where(**each)).all.total for each in (one, other)]
        assert add_up(parts) == whole
        assert all(parts)


def test_pages_show_the_total(month, vera, as_user):
    client = as_user(vera)
    shown = whole_money_text(asked(month).all.total, "USD")
    page = text_of(client, "/t/acme/costs/?month=2026-11")
    assert f"Where {shown} went" in page
    for by in ("project", "owner", "machine", "state", "meter"):
        assert f"Where {shown} went" in text_of(client, f"/t/acme/costs/?month=2026-11&by={by}")
    bought_nothing = whole_money_text(asked(month).all.bought_nothing, "USD")
    assert bought_nothing in page
    # In the strip over every page.
    assert shown in text_of(client, "/t/acme/")


def test_the_api_says_the_total(month, vera, as_user):
    client = as_user(vera)
    total = f"{asked(month).all.total:.2f}"
    for by in ("", "day", "machine", "project,meter", "state"):
        answer = client.get(
            "/api/v1/costs/",
            {"start": NOVEMBER, "end": DECEMBER, "by": by} if by else {"start": NOVEMBER, "end": DECEMBER},
        )
        assert answer.json()["all"]["total"] == total


class TestFiles:
    def file(self, client: Client, kind: str) -> bytes:
        answer = client.get("/api/v1/costs/export/", {"month": "2026-11", "format": kind})
        assert answer.status_code == 200
        return answer.getvalue()

    def expected(self, month) -> dict[str, Decimal]:
        """As charged."""
        return dict(asked(month).all.amounts)

    def test_csv_has_every_amount(self, month, vera, as_user):
        rows = list(csv.DictReader(io.StringIO(self.file(as_user(vera), "csv").decode())))
        for currency, amount in self.expected(month).items():
            assert add_up([Decimal(row["amount"]) for row in rows if row["currency"] == currency]) == amount
        converted = add_up([Decimal(row["converted_amount"]) for row in rows if row["converted_amount"]])
        assert abs(converted - asked(month).all.total) < Decimal("1e-8")

    def test_parquet_has_every_amount_and_every_state(self, month, vera, as_user):
        rows = pyarrow.parquet.read_table(io.BytesIO(self.file(as_user(vera), "parquet"))).to_pylist()
        for currency, amount in self.expected(month).items():
            mine = [row for row in rows if row["currency"] == currency]
            assert add_up([row["amount"] for row in mine]) == amount
            assert add_up([row[f"{state.value}_amount"] for row in mine for state in GpuState]) == amount

    def test_focus_has_every_amount(self, month, vera, as_user):
        rows = list(csv.DictReader(io.StringIO(self.file(as_user(vera), "focus").decode())))
        for currency, amount in self.expected(month).items():
            mine = [Decimal(row["BilledCost"]) for row in rows if row["BillingCurrency"] == currency]
            assert abs(add_up(mine) - amount) < Decimal("1e-8")


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
