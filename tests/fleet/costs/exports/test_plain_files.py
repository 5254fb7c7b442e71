"""The plain CSV and the Parquet file: the same money as everywhere, in cells that a spreadsheet may open."""

from __future__ import annotations

import io
from datetime import date, datetime
from decimal import Decimal

import pytest
import time_machine
from pyarrow import parquet

from fleet.costs.spend.models import ExchangeRate
from fleet.costs.spend.spend import spend
from tests.fleet.costs.exports.conftest import HOSTILE, NOVEMBER, body_of, rows_of
from tests.fleet.costs.seeding import spend_on

pytestmark = pytest.mark.usefixtures("month_of_money")


@pytest.fixture(autouse=True)
def in_december():
    with time_machine.travel("2026-12-04T10:00:00Z", tick=False):
        yield


def sums(rows, amount="amount", currency="currency") -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for row in rows:
        if row[amount] not in {"", None}:
            found[row[currency]] = found.get(row[currency], Decimal(0)) + Decimal(row[amount])
    return found


def test_the_csv_adds_up_to_the_one_total_by_state(acme, download):
    said = spend(team=acme, start=NOVEMBER[0], end=NOVEMBER[1]).all
    rows = download()
    assert sums(rows) == said.amounts
    idle = [row for row in rows if row["state"] in {"held", "free"} and row["currency"] == "USD"]
    assert sums(idle)["USD"] == said.idle
    assert sum(float(row["unpriced_seconds"] or 0) for row in rows) == said.unpriced_seconds


def test_what_has_a_rate_is_converted_with_the_rate_of_its_day(acme, download):
    for day, rate in ((1, "0.14"), (30, "0.15")):
        ExchangeRate.objects.create(
            team=acme, currency="CNY", into="USD", day=date(2026, 11, day), rate=Decimal(rate), source="bank"
        )
    rows = download()
    said = spend(team=acme, start=NOVEMBER[0], end=NOVEMBER[1]).all
    assert sums(rows, "converted_amount", "converted_currency") == {"USD": said.total}
    disk = next(row for row in rows if row["meter"] == "disk_stopped")
    assert (disk["amount"], disk["converted_amount"], disk["exchange_rate"]) == ("0.4", "0.06", "0.15")
    assert (disk["exchange_rate_day"], disk["exchange_rate_source"]) == ("2026-11-30", "bank")


def test_without_a_rate_nothing_is_converted(download):
    yuan = [row for row in download() if row["currency"] == "CNY"]
    assert {row["converted_amount"] for row in yuan} == {""}


@pytest.mark.parametrize("kind", ["csv", "focus"])
def test_no_cell_is_a_formula(as_user, vera, make_instance, acme, kind):
    for number, start in enumerate("=+-@\t\r"):
        machine = make_instance(name=f"{start}cmd|' /C calc'!A0", external_id=f"evil-{number}")
        spend_on(acme, date(2026, 11, 9), 1, instance=machine)
    body = body_of(as_user(vera), {"month": "2026-11", "format": kind})
    cells = [text for row in rows_of(body) for text in row.values()]
    assert f"'{HOSTILE}" in cells
    assert sum(text.startswith("'") and "cmd|" in text for text in cells) >= 6
    bad = [text for text in cells if text.startswith(("=", "+", "@", "\t", "\r"))]
    assert bad == []
    # What begins with a minus is a number.
    assert all(Decimal(text) < 0 for text in cells if text.startswith("-"))


def test_a_byte_order_mark_is_there_for_excel_and_only_if_asked(as_user, vera):
    client = as_user(vera)
    plain = body_of(client, {"month": "2026-11"})
    marked = body_of(client, {"month": "2026-11", "bom": "1"})
    assert marked == b"\xef\xbb\xbf" + plain
    assert "北京" in plain.decode()


def test_parquet_holds_machine_days_exactly(acme, as_user, vera):
    body = body_of(as_user(vera), {"month": "2026-11", "format": "parquet"})
    table = parquet.read_table(io.BytesIO(body))
    assert sums(table.to_pylist()) == spend(team=acme, start=NOVEMBER[0], end=NOVEMBER[1]).all.amounts
    assert str(table.schema.field("amount").type) == "decimal128(38, 14)"
    assert str(table.schema.field("day").type) == "date32[day]"
    row = next(one for one in table.to_pylist() if one["job"] == "run-9")
    parts = [row[name] for name in table.column_names if name.endswith("_amount") and name != "converted_amount"]
    assert sum(parts) == row["amount"]
    assert row["working_gpu_seconds"] == 400_000
    # No spreadsheet opens it: names are as they are.
    assert HOSTILE in table.column("machine").to_pylist()


def test_focus_in_parquet_has_the_rows_of_the_csv(as_user, vera, download):
    body = body_of(as_user(vera), {"month": "2026-11", "format": "focus-parquet", "version": "1.3"})
    table = parquet.read_table(io.BytesIO(body))
    rows = table.to_pylist()
    text = download(format="focus", version="1.3")
    assert table.column_names == list(text[0])
    assert [row["BilledCost"] for row in rows] == [Decimal(row["BilledCost"]) for row in text]
    assert str(table.schema.field("BilledCost").type) == "decimal128(38, 14)"
    assert rows[0]["ChargePeriodStart"] == datetime.fromisoformat(text[0]["ChargePeriodStart"])
    assert rows[0]["ChargeClass"] is None
    assert table.schema.metadata[b"FocusVersion"] == b"1.3"
