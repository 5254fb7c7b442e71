"""Files: every form that is read, and every fault with its line and column; a file with one fault gives nothing."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import parquet

from fleet.costs.bills.files import tables
from fleet.costs.bills.files.reading import About, read_bill
from fleet.providers.base import ChargeKind, Money

ABOUT = About("CNY", ZoneInfo("UTC"))
HEAD = "amount,start,end,machine,resource,kind,quantity,unit,currency,description,line_id\n"
FOCUS = (
    "BillingAccountId,BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ResourceId,"
    "ServiceCategory,ServiceName,ChargeDescription,ConsumedQuantity,ConsumedUnit"
)


def own(*rows: str, about=ABOUT):
    return read_bill((HEAD + "\n".join(rows)).encode(), about)


def faults(sheet):
    assert sheet.charges == []
    return [(fault.line, fault.column) for fault in sheet.faults]


def test_our_own_columns():
    sheet = own("12.50,2026-11-01T00:00:00Z,2026-11-01T06:00:00+02:00,pod-1,,compute,4,hours,USD,H100,L-1")
    (line,) = sheet.charges
    assert (sheet.layout, line.amount, line.kind) == ("own", Money(Decimal("12.50"), "USD"), ChargeKind.COMPUTE)
    assert (line.start, line.end) == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 4, tzinfo=UTC))
    assert (line.external_id, line.quantity, line.unit, line.line_id) == ("pod-1", 4, "hours", "L-1")


def test_dates_are_days_of_the_bills_zone_and_the_accounts_currency_fills_in():
    about = About("CNY", ZoneInfo("Asia/Shanghai"))
    sheet = own("8,2026-11-01,,pod-1,,,,,,,", "9,2026-11-01,2026-11-30,pod-1,,,,,,,", about=about)
    day, month = sheet.charges
    assert day.amount == Money(Decimal(8), "CNY")
    assert (day.start, day.end - day.start) == (datetime(2026, 10, 31, 16, tzinfo=UTC), timedelta(days=1))
    assert month.end == datetime(2026, 11, 30, 16, tzinfo=UTC)


def test_a_day_on_which_clocks_change_is_as_long_as_it_is():
    sheet = own("8,2026-10-25,,pod-1,,,,,,,", about=About("EUR", ZoneInfo("Europe/Berlin")))
    assert sheet.charges[0].end - sheet.charges[0].start == timedelta(hours=25)


def test_lines_about_the_same_keep_apart_and_unknown_kinds_are_kept():
    sheet = own("1,2026-11-01,,a,,surcharge,,,,,", "1,2026-11-01,,a,,surcharge,,,,,", "-2,2026-11-01,,a,,credit,,,,,")
    one, other, credit = sheet.charges
    assert one.line_id != other.line_id
    assert (one.kind, one.raw_kind, credit.kind) == (ChargeKind.OTHER, "surcharge", ChargeKind.CREDIT)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_what_spreadsheets_write_is_read(encoding):
    text = "amount;start;description\r\n¥3.50;2026-11-01;显卡\r\n\r\n"
    (line,) = read_bill(text.encode(encoding), ABOUT).charges
    assert (line.amount.amount, line.description) == (Decimal("3.50"), "显卡")


def test_digitaloceans_invoice():
    text = (
        "product,group_description,description,hours,start,end,USD,project_name,category\n"
        "GPU Droplets,,gpu-h100x8-640gb,100,2020-07-01 00:00:00 +0000,2020-07-22 18:14:39 +0000,$3.11,,iaas\n"
        "Taxes,,STATE SALES TAX (6.25%),,2020-07-01 00:00:00 +0000,2020-07-31 23:59:59 +0000,$0.16,,iaas\n"
    )
    sheet = read_bill(text.encode(), ABOUT)
    assert sheet.layout == "digitalocean"
    assert [(line.kind, line.amount) for line in sheet.charges] == [
        (ChargeKind.COMPUTE, Money(Decimal("3.11"), "USD")),
        (ChargeKind.TAX, Money(Decimal("0.16"), "USD")),
    ]


def test_a_cost_and_usage_report_of_aws():
    names = ["lineItem/ResourceId", "lineItem/UsageType", "lineItem/UsageStartDate", "lineItem/UsageEndDate"]
    names += ["lineItem/UsageAmount", "lineItem/UnblendedCost", "lineItem/CurrencyCode", "lineItem/LineItemDescription"]
    row = "i-0a1,BoxUsage:p4d.24xlarge,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,1,21.957642,USD,p4d"
    sheet = read_bill((",".join(names) + "\n" + row).encode(), ABOUT)
    (line,) = sheet.charges
    assert (sheet.layout, line.kind, line.external_id) == ("aws_report", ChargeKind.COMPUTE, "i-0a1")


def test_columns_that_nobody_knows_are_assigned():
    content = b"Kosten,Tag,Rechner\n1.5,2026-11-01,a\n"
    unknown = read_bill(content, ABOUT)
    assert (unknown.layout, unknown.charges, unknown.faults) == ("", [], [])
    assert unknown.columns == ("Kosten", "Tag", "Rechner")
    about = About("EUR", ZoneInfo("UTC"), {"amount": "Kosten", "start": "Tag", "machine": "Rechner"})
    (line,) = read_bill(content, about).charges
    assert (line.external_id, line.amount) == ("a", Money(Decimal("1.5"), "EUR"))


FOCUS_ROW = "acct,9.81,USD,Usage,2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,i-0a1,Compute,EC2,p4d,24,Hours"


@pytest.mark.parametrize(
    "extra", ["", ",InvoiceId", ",ServiceProviderName,HostProviderName"], ids=["1.0", "1.2", "1.3"]
)
def test_focus_in_its_versions(extra):
    filled = extra.count(",") * ",x"
    (line,) = read_bill(f"{FOCUS}{extra}\n{FOCUS_ROW}{filled}\n".encode(), ABOUT).charges
    assert (line.amount, line.kind) == (Money(Decimal("9.81"), "USD"), ChargeKind.COMPUTE)
    assert (line.external_id, line.quantity, line.unit) == ("i-0a1", Decimal(24), "Hours")


@pytest.mark.parametrize(
    ("category", "kind"),
    [("Tax", "tax"), ("Credit", "credit"), ("Purchase", "commitment"), ("Adjustment", "refund")],
)
def test_categories_of_focus(category, kind):
    row = FOCUS_ROW.replace("Usage", category).replace("9.81", "-1.5E-3")
    (line,) = read_bill(f"{FOCUS}\n{row}\n".encode(), ABOUT).charges
    assert (line.kind, line.amount.amount) == (kind, Decimal("-0.0015"))


def parquet_of(**columns: object) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def focus_parquet(rows: int = 1) -> bytes:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    return parquet_of(
        BilledCost=pa.array([Decimal("9.810000000001")] * rows, pa.decimal128(30, 12)),
        BillingCurrency=["USD"] * rows,
        ChargeCategory=["Usage"] * rows,
        ChargePeriodStart=pa.array([start] * rows, pa.timestamp("us", "UTC")),
        ChargePeriodEnd=pa.array([start + timedelta(days=1)] * rows, pa.timestamp("us")),
        ResourceId=pa.array([None] * rows, pa.string()),
    )


def test_focus_as_parquet_keeps_every_digit():
    (line,) = read_bill(focus_parquet(), ABOUT).charges
    assert (line.amount.amount, line.external_id) == (Decimal("9.810000000001"), "")
    assert line.end - line.start == timedelta(days=1)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (",2026-11-01,,a,,,,,,,", "amount"),
        ("free,2026-11-01,,a,,,,,,,", "amount"),
        ('"1,234.50",2026-11-01,,a,,,,,,,', "amount"),
        ("NaN,2026-11-01,,a,,,,,,,", "amount"),
        ("Infinity,2026-11-01,,a,,,,,,,", "amount"),
        ("1e999999,2026-11-01,,a,,,,,,,", "amount"),
        ("=1+1,2026-11-01,,a,,,,,,,", "amount"),
        ("1,,,a,,,,,,,", "start"),
        ("1,01/11/2026,,a,,,,,,,", "start"),
        ("1,9999-12-31,,a,,,,,,,", "start"),
        ("1,2026-11-01T00:00:00Z,,a,,,,,,,", "end"),
        ("1,2026-11-02,2026-11-01T00:00:00Z,a,,,,,,,", "end"),
        ("1,2026-11-01,2029-11-01,a,,,,,,,", "end"),
        ("1,2026-11-01,,a,,,many,,,,", "quantity"),
        ("1,2026-11-01,,a,,,,,Dollar,,", "currency"),
    ],
)
def test_a_wrong_cell_is_told_with_line_and_column_and_nothing_is_read(row, column):
    sheet = own("1,2026-11-01,,a,,,,,,,", row)
    assert faults(sheet) == [(3, column)]
    assert sheet.faults[0].text


def test_assigned_columns_are_named_as_the_file_does():
    about = About("EUR", ZoneInfo("UTC"), {"amount": "Kosten", "start": "Tag"})
    assert faults(read_bill(b"Kosten,Tag\nviel,2026-11-01\n", about)) == [(2, "Kosten")]


def test_focus_without_a_column_it_needs_says_which():
    sheet = read_bill(FOCUS.replace("ChargeCategory", "Category").encode() + b"\n", ABOUT)
    assert "ChargeCategory" in sheet.faults[0].text


def test_a_category_that_focus_does_not_know():
    assert faults(read_bill(f"{FOCUS}\n{FOCUS_ROW.replace('Usage', 'Gift')}\n".encode(), ABOUT)) == [
        (2, "ChargeCategory")
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"amount,start\n",
        b"amount,start\n1,2026-11-01,surplus\n",
        b"amount,amount,start\n1,1,2026-11-01\n",
        b"\xff\xfe\x00\x01",
        b"amount,start\n\0\n",
        b"PAR1 and then nothing of the kind",
        b'amount,start\n"1' + b"9" * 200_000,
        b"amount,start," + b"x" * 200 + b"\n1,2026-11-01,2\n",
        b"amount,start" + b",x" * 1,
        b"\x80\x81\xff" * 5,
    ],
    ids=range(12),
)
def test_files_that_are_none_are_refused_and_nothing_breaks(content):
    sheet = read_bill(content, ABOUT)
    assert sheet.charges == []
    assert len(sheet.faults) == 1


def test_a_file_that_is_too_large_is_not_even_looked_at(monkeypatch):
    monkeypatch.setattr(tables, "MAX_BYTES", 100)
    assert "larger" in own("1,2026-11-01,,a,,,,,,,", "1,2026-11-01,,a,,,,,,,").faults[0].text


def test_too_many_lines_are_refused(monkeypatch):
    monkeypatch.setattr(tables, "MAX_LINES", 2)
    assert faults(own(*["1,2026-11-01,,a,,,,,,,"] * 3)) == [(4, "")]
    assert "50,000" in read_bill(focus_parquet(3), ABOUT).faults[0].text


def test_a_parquet_file_that_unpacks_to_gigabytes_is_refused_before_it_is(monkeypatch):
    monkeypatch.setattr(tables, "MAX_UNPACKED_BYTES", 1_000)
    assert (
        "unpacks"
        in read_bill(parquet_of(BilledCost=[f"{number:032}" for number in range(1_000)]), ABOUT).faults[0].text
    )


def test_one_long_value_that_all_lines_share_is_refused_before_it_is_copied():
    lines = 20_000
    same = pa.DictionaryArray.from_arrays(pa.array([0] * lines, pa.int32()), ["x" * 500_000])
    content = parquet_of(amount=["1"] * lines, start=["2026-11-01"] * lines, description=same)
    assert len(content) < 1_000_000
    assert "20,000" in read_bill(content, ABOUT).faults[0].text


def test_tags_and_other_lists_in_cells_are_left_out():
    (line,) = read_bill(parquet_of(amount=["1"], tags=[["a"]], start=["2026-11-01"]), ABOUT).charges
    assert line.amount.amount == 1


def test_faults_are_counted_up_to_a_limit():
    assert len(own(*["x,2026-11-01,,a,,,,,,,"] * 200).faults) == 50


def test_text_is_made_one_line_and_cut():
    sheet = own('1,2026-11-01,,a\u202e,,,,,,"<script>\r\nalert(1)</script>' + "x" * 400 + '",')
    line = sheet.charges[0]
    assert line.external_id == "a"
    assert "\n" not in line.description
    assert len(line.description) == 300
