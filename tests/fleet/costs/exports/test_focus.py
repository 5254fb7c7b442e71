"""The FOCUS file keeps the rules of the specification, and says the same total as every page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.spend.models import Adjustment
from fleet.costs.spend.spend import spend
from tests.fleet.costs.exports.conftest import NOVEMBER
from tests.fleet.costs.exports.focus_rules import MANDATORY, commitments_off, problems

pytestmark = pytest.mark.usefixtures("month_of_money")


@pytest.fixture(autouse=True)
def in_december():
    with time_machine.travel("2026-12-04T10:00:00Z", tick=False):
        yield


@pytest.mark.parametrize("version", ["1.0", "1.2", "1.3"])
def test_a_file_keeps_every_rule(download, version):
    rows = download(format="focus", version=version)
    assert len(rows) > 15
    assert problems(rows) == []
    assert set(commitments_off(rows).values()) == {Decimal(0)}


def test_there_are_21_mandatory_columns(download):
    assert len(MANDATORY) == 21
    assert set(MANDATORY) <= set(download(format="focus")[0])


def test_what_was_billed_adds_up_to_the_one_total_exactly(acme, download):
    said = spend(team=acme, start=NOVEMBER[0], end=NOVEMBER[1]).all.amounts
    for version in ("1.0", "1.2", "1.3"):
        billed: dict[str, Decimal] = {}
        for row in download(format="focus", version=version):
            currency = row["BillingCurrency"]
            billed[currency] = billed.get(currency, Decimal(0)) + Decimal(row["BilledCost"])
        assert billed == said
    assert said == {"USD": Decimal("240.903456789"), "CNY": Decimal("5.28")}


def test_versions_differ_in_their_columns_alone(download):
    files = {version: download(format="focus", version=version) for version in ("1.0", "1.2", "1.3")}
    names = {version: set(rows[0]) for version, rows in files.items()}
    # The names of drafts, which the published validator asks for beside the others.
    drafts = {"ChargeType", "InvoiceIssuer", "Provider", "Publisher", "ResourceID"}
    assert names["1.0"] - names["1.2"] == drafts
    assert names["1.2"] < names["1.3"]
    assert len([name for name in names["1.0"] - drafts if not name.startswith("x_")]) == 42
    assert {"SkuMeter", "InvoiceId", "PricingCurrency"} <= names["1.2"] - names["1.0"]
    assert {"ServiceProviderName", "HostProviderName", "AllocatedMethodId"} <= names["1.3"] - names["1.2"]
    for old, new in zip(files["1.0"], files["1.3"], strict=True):
        assert {name: text for name, text in old.items() if name not in drafts}.items() <= new.items()


def test_a_machine_that_several_paid_for_is_split(download):
    rows = [row for row in download(format="focus", version="1.3") if row["AllocatedMethodId"]]
    assert {row["ResourceId"] for row in rows} == {"i-1"}
    ratios = [json.loads(row["AllocatedMethodDetails"])["Elements"][0]["AllocatedRatio"] for row in rows]
    assert sum(ratios) == pytest.approx(1)
    assert [bool(row["AllocatedResourceId"]) for row in rows] == [row["x_IsIdleShare"] != "true" for row in rows]


def test_a_shared_day_says_whose_it_was_and_what_was_idle(download):
    run = next(row for row in download(format="focus") if row["x_JobId"] == "run-9")
    assert (run["x_Project"], run["x_Owner"], run["Tags"]) == ("vision", "alice", '{"env":"prod"}')
    assert (run["x_IdleCost"], run["x_StalledCost"], run["x_UsefulGpuSeconds"]) == ("12.0", "8.0", "400000.0")
    assert (run["x_GpuModel"], run["x_GpuCount"], run["RegionId"]) == ("H100 SXM", "8", "us-east-1")


def test_spot_is_dynamic_and_time_without_a_price_is_told(download):
    spot = [row for row in download(format="focus") if row["ResourceId"] == "i-2" and row["x_Meter"] == "compute"]
    assert [row["PricingCategory"] for row in spot] == ["Dynamic", "Dynamic"]
    assert [(row["BilledCost"], row["x_UnpricedSeconds"]) for row in spot] == [("8.88", "0.0"), ("0.0", "86400.0")]


def test_a_commitment_is_bought_and_used_by_reserved_machines_or_by_none(download):
    rows = [row for row in download(format="focus") if row["CommitmentDiscountId"]]
    told = [(row["ChargeCategory"], row["CommitmentDiscountStatus"], row["ResourceId"]) for row in rows]
    commitment = "acct-77/commitment"
    assert told == [
        ("Purchase", "", commitment),
        ("Usage", "Used", "i-3"),
        ("Purchase", "", commitment),
        ("Usage", "Unused", commitment),
    ]
    assert [(row["BilledCost"], row["EffectiveCost"]) for row in rows] == [("10.0", "0.0"), ("0.0", "10.0")] * 2


def test_each_adjustment_is_a_row_of_its_kind(download):
    rows = [row for row in download(format="focus") if row["x_Meter"] == "adjustment"]
    told = [(row["x_AdjustmentKind"], row["ChargeCategory"], row["ChargeClass"], row["BilledCost"]) for row in rows]
    assert told == [
        ("usage", "Usage", "", "2.5"),
        ("credit", "Credit", "", "-5.0"),
        ("tax", "Tax", "", "19.0"),
        ("purchase", "Purchase", "", "100.0"),
        ("correction", "Adjustment", "", "-0.07"),
        ("refund", "Credit", "Correction", "-4.0"),
    ]
    # Typed in December: it stands on December's bill.
    assert rows[-1]["BillingPeriodStart"] == "2026-12-01T00:00:00Z"
    assert rows[-1]["ChargePeriodStart"] == "2026-11-12T00:00:00Z"


def test_an_adjustment_that_is_not_summed_yet_changes_no_total(acme, download, lambda_account):
    Adjustment.objects.create(
        team=acme,
        account=lambda_account,
        amount=Decimal(-50),
        currency="USD",
        kind="credit",
        at=datetime(2026, 11, 5, 13, tzinfo=UTC),
        reason="just now",
    )
    rows = [row for row in download(format="focus") if row["x_Meter"] == "adjustment"]
    assert (rows[0]["BilledCost"], rows[0]["ChargeCategory"]) == ("2.5", "Adjustment")


def test_rules_find_what_is_wrong(download):
    """The suite itself: each of these breaks one rule, and is found."""
    good = download(format="focus")
    for name, value in (
        ("BilledCost", ""),
        ("BilledCost", "1,000.00"),
        ("BillingCurrency", "Dollar"),
        ("ChargeCategory", "Refund"),
        ("ChargePeriodStart", "2026-11-02"),
        ("ListUnitPrice", "-1.0"),
        ("PricingQuantity", ""),
        ("ChargeFrequency", "Monthly"),
        ("Tags", '{"a":[1]}'),
        ("ConsumedUnit", ""),
        ("ServiceSubcategory", "Block Storage"),
        ("ProviderName", "null"),
    ):
        assert problems([{**good[0], name: value}, *good[1:]]), name
