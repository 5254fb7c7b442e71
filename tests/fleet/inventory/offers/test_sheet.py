"""Price lists as CSV: both layouts found by their columns, wrong cells told by line and column, nothing half read."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.inventory.offers import sheet as sheets
from fleet.inventory.offers.sheet import About, gpu_memory_mib, read_sheet
from tests.fleet.inventory.offers.conftest import ABOUT, DAY

GPUHUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone,GpuInfo\n"
)
INFO = "\"{'Gpus': [{'Name': 'H100', 'Manufacturer': 'NVIDIA', 'Count': 8.0, 'MemoryInfo': {'SizeInMiB': 81920}}]}\""


def faults(text):
    return [(fault.line, fault.column) for fault in read_sheet(text, ABOUT).faults]


def test_gpuhunts_columns():
    sheet = read_sheet(GPUHUNT + "gpu_8x_h100_sxm5,us-east-1,23.92,208,1800,8,H100,80.0,False,22000.0\n", ABOUT)
    (row,) = sheet.rows
    assert (sheet.layout, sheet.faults) == ("gpuhunt", [])
    assert (row["provider"], row["instance_type"], row["region"], row["market"]) == (
        "lambda",
        "gpu_8x_h100_sxm5",
        "us-east-1",
        "on_demand",
    )
    assert (row["price_per_hour"], row["currency"]) == (Decimal("23.92"), "USD")
    assert (row["gpu_count"], row["gpu_memory_mib"], row["vcpus"], row["ram_mib"], row["disk_gb"]) == (
        8,
        81_920,
        208,
        1800 * 1024,
        22_000,
    )
    assert (row["priced_on"], row["origin"]) == (DAY, "prices.csv")


def test_skypilots_columns_with_both_prices():
    text = SKYPILOT + f"big,H100,8.0,128,1600.0,23.60,10.00,eu-north1,,{INFO}\n"
    rows = read_sheet(text, ABOUT).rows
    assert [(row["market"], row["price_per_hour"], row["gpu_memory_mib"]) for row in rows] == [
        ("on_demand", Decimal("23.60"), 81_920),
        ("spot", Decimal("10.00"), 81_920),
    ]


def test_zones_of_a_region_are_one_offer_at_its_cheapest():
    lines = "".join(f"big,H100,8,128,1600,{price},,us-east1,us-east1-{zone},\n" for zone, price in (("a", 9), ("b", 8)))
    (row,) = read_sheet(SKYPILOT + lines, ABOUT).rows
    assert row["price_per_hour"] == 8


def test_a_share_of_a_gpu_is_left_out_and_counted():
    """As Azure sells A10s."""
    lines = "".join(f"Standard_NV{count},A10,{count},6,55,0.45,,eastus,,\n" for count in ("0.167", "0.333", "0.5", "1"))
    sheet = read_sheet(SKYPILOT + lines, ABOUT)
    assert (len(sheet.rows), sheet.without_gpu, sheet.faults) == (1, 3, [])


def test_one_and_a_half_gpus_are_a_mistake():
    assert faults(SKYPILOT + "x,A10,1.5,6,55,0.45,,eastus,,\n") == [(2, "AcceleratorCount")]


@pytest.mark.parametrize(
    ("info", "mib"),
    [
        (INFO.strip('"'), 81_920),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 80}}]}", 81_920),
        ('{"Gpus": [{"MemoryInfo": {"SizeInMiB": 24576.0}}]}', 24_576),
        ("", None),
        ("H100", None),
        ("__import__('os').getcwd()", None),
        ("(" * 900, None),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 1e400}}]}", None),
    ],
)
def test_gpu_info_is_read_as_data_and_may_say_gb_where_it_means_mib(info, mib):
    assert gpu_memory_mib(info) == mib


def test_a_provider_column_goes_before_the_name_typed():
    text = GPUHUNT.strip() + ",provider\nx,eu,1,1,1,1,L4,24,False,,Nebius\n"
    assert read_sheet(text, ABOUT).rows[0]["provider"] == "nebius"


def test_a_list_that_nobody_is_named_for_is_refused():
    nobody = About(provider="", currency="USD", priced_on=DAY, origin="")
    (fault,) = read_sheet(GPUHUNT + "x,eu,1,1,1,1,L4,24,False,\n", nobody).faults
    assert (fault.line, fault.column) == (2, "provider")
    assert "Name the provider" in fault.text


def test_machines_without_a_gpu_are_left_out_and_counted():
    text = GPUHUNT + "cpu,eu,0.1,4,16,0,,,False,\ngpu,eu,1,4,16,1,L4,24,False,\n"
    sheet = read_sheet(text, ABOUT)
    assert (len(sheet.rows), sheet.without_gpu, sheet.faults) == (1, 1, [])


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("x,eu,$2.49,4,16,1,L4,24,False,", "price"),
        ("x,eu,,4,16,1,L4,24,False,", "price"),
        ("x,eu,0,4,16,1,L4,24,False,", "price"),
        ("x,eu,1e30,4,16,1,L4,24,False,", "price"),
        ("x,eu,1,four,16,1,L4,24,False,", "cpu"),
        ("x,eu,1,4,-16,1,L4,24,False,", "memory"),
        ("x,eu,1,4,16,1.5,L4,24,False,", "gpu_count"),
        ("x,eu,1,4,16,1,L4,24,maybe,", "spot"),
        (",eu,1,4,16,1,L4,24,False,", "instance_name"),
        ("x,eu,1,4,16,1,L4,24,False,,,too,many", ""),
    ],
)
def test_a_wrong_cell_is_told_by_line_and_column_with_a_remedy(line, column):
    sheet = read_sheet(GPUHUNT + "fine,eu,1,4,16,1,L4,24,False,\n" + line + "\n", ABOUT)
    (fault,) = sheet.faults
    assert (fault.line, fault.column) == (3, column)
    assert len(fault.text) > 20


def test_every_wrong_cell_is_told_at_once():
    assert faults(GPUHUNT + "x,eu,a,4,16,1,L4,24,False,\ny,eu,1,4,16,b,L4,24,False,\n") == [
        (2, "price"),
        (3, "gpu_count"),
    ]


def test_skypilot_lines_need_one_price():
    assert faults(SKYPILOT + "big,H100,8,128,1600,,,eu-north1,,\n") == [(2, "Price")]


def test_unknown_columns_are_told_with_what_is_missing():
    (fault,) = read_sheet("instance_name,location,price\na,b,1\n", ABOUT).faults
    assert fault.line == 1
    assert "gpuhunt" in fault.text
    assert "gpu_count" in fault.text


@pytest.mark.parametrize("text", ["", "\n", "\0", GPUHUNT, GPUHUNT + "cpu,eu,1,4,16,0,,,False,\n", "a,b\n" * 3])
def test_what_is_no_price_list_has_a_fault(text):
    assert len(read_sheet(text, ABOUT).faults) == 1


def test_a_broken_quote_is_told_with_its_line():
    assert faults(GPUHUNT + "x,eu,1,4,16,1,L4,24,False,\n" + '"' + "z" * 200_000 + "\n") == [(3, "")]


def test_files_that_are_too_large_or_too_long_are_refused(monkeypatch):
    line = "x{},eu,1,4,16,1,L4,24,False,\n"
    monkeypatch.setattr(sheets, "MAX_ROWS", 3)
    assert faults(GPUHUNT + "".join(line.format(number) for number in range(5))) == [(5, "")]
    monkeypatch.setattr(sheets, "MAX_BYTES", 100)
    assert faults(GPUHUNT + line) == [(0, "")]


def test_a_byte_order_mark_and_windows_lines_do_no_harm():
    text = "﻿" + (GPUHUNT + "x,eu,1,4,16,1,L4,24,False,\n").replace("\n", "\r\n")
    assert len(read_sheet(text, ABOUT).rows) == 1
