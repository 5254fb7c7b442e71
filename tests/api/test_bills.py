"""Bills over the API: taken, asked for, counted as billed, taken back; and who may."""

from __future__ import annotations

import base64
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.costs.bills.models import Bill, BillLine
from fleet.costs.spend.models import Adjustment
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_word.models import ProviderReading
from fleet.teams.models import Scope

BILLS = "/api/v1/bills/"
ADJUSTMENTS = "/api/v1/adjustments/"
CSV = "amount,start,machine,kind\n48.00,2026-11-01,p1a2,compute\n"


@pytest.fixture
def pods(acme):
    return ProviderAccount.objects.create(team=acme, kind="runpod", name="RunPod")


@pytest.fixture
def operator(acme, as_token):
    return as_token(acme, Scope.OPERATE)


def post(client, address, body):
    return client.post(address, body, content_type="application/json")


def test_a_bill_is_taken_once(operator, pods):
    body = {"account": pods.pk, "text": CSV, "file_name": "november.csv"}
    first, again = post(operator, BILLS, body), post(operator, BILLS, body)
    assert first.status_code == 201
    bill = Bill.objects.get()
    assert first.json() == {"bill": bill.pk, "new": 1, "changed": 0, "dropped": 0, "same": 0, "again": False}
    assert again.json()["again"] is True
    line = operator.get("/api/v1/bill-lines/", {"bill": bill.pk}).json()["results"][0]
    assert (line["amount"], line["currency"], line["external_id"]) == ("48.000000000000", "USD", "p1a2")


def test_a_dry_run_writes_nothing(operator, pods):
    answer = post(operator, BILLS, {"account": pods.pk, "text": CSV, "dry_run": True})
    assert (answer.json()["bill"], answer.json()["new"]) == (None, 1)
    assert not Bill.objects.exists()


def test_columns_are_assigned(operator, pods):
    columns = {"amount": "Kosten", "start": "Tag"}
    text = "Kosten;Tag\n1.5;2026-11-01\n"
    unknown = post(operator, BILLS, {"account": pods.pk, "text": text})
    assert (unknown.status_code, unknown.json()["field"]) == (400, "columns")
    assert post(operator, BILLS, {"account": pods.pk, "text": text, "columns": columns}).status_code == 201
    assert BillLine.objects.get().amount == Decimal("1.5")


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"text": CSV + "free,2026-11-02,p1a2,compute\n"}, "text", "line 3, column amount"),
        ({"text": None, "content_base64": "%%%"}, "content_base64", "base64"),
        ({"text": None}, "text", "content_base64"),
        ({"content_base64": "eA=="}, "text", "content_base64"),
        ({"time_zone": "Mars/Olympus"}, "time_zone", "Asia/Shanghai"),
        ({"columns": {"price": "amount"}}, "columns", "price"),
        ({"text": None, "content_base64": base64.b64encode(b"PAR1PAR1").decode()}, "text", "Parquet"),
    ],
)
def test_a_fault_is_refused_by_name_and_nothing_is_written(operator, pods, change, field, says):
    body = {name: value for name, value in {"account": pods.pk, "text": CSV, **change}.items() if value is not None}
    answer = post(operator, BILLS, body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert says in answer.json()["detail"]
    assert not Bill.objects.exists()


def test_a_provider_is_asked(operator, pods, account):
    assert post(operator, f"{BILLS}ask/", {"account": pods.pk}).status_code == 202
    assert ProviderReading.objects.get().account == pods
    assert post(operator, f"{BILLS}ask/", {"account": account.pk}).json()["field"] == "account"


def test_lines_are_counted_as_billed_and_taken_back(operator, fleet):
    (month,) = operator.get("/api/v1/reconciliations/").json()["results"]
    address = f"/api/v1/reconciliations/{month['id']}/accept/"
    # Three of the line's eight dollars are not explained.
    assert post(operator, address, {}).json() == {"adjustments": []}
    (line,) = operator.get("/api/v1/reconciliation-lines/").json()["results"]
    (made,) = post(operator, address, {"lines": [line["id"]]}).json()["adjustments"]
    assert operator.get(f"{ADJUSTMENTS}{made}/").json()["amount"] == "8.0000000000"
    assert post(operator, address, {"lines": [line["id"] + 1]}).status_code == 400
    back = post(operator, f"{ADJUSTMENTS}{made}/reverse/", {"reason": "typed wrong"})
    assert (back.status_code, back.json()["amount"], back.json()["reverses"]) == (201, "-8.0000000000", made)
    assert post(operator, f"{ADJUSTMENTS}{made}/reverse/", {}).status_code == 400
    assert operator.get(f"{ADJUSTMENTS}{made}/").json()["reversed_by"] == back.json()["id"]


def test_a_refund_is_made(operator, pods):
    at = timezone.now() - timedelta(days=3)
    body = {"account": pods.pk, "at": at.isoformat(), "amount": "-20.00", "currency": "USD", "kind": "refund"}
    assert post(operator, ADJUSTMENTS, body).json()["field"] == "reason"
    answer = post(operator, ADJUSTMENTS, {**body, "reason": "outage"})
    assert (answer.status_code, answer.json()["amount"]) == (201, "-20.0000000000")
    assert post(operator, ADJUSTMENTS, {**body, "reason": "x", "amount": "0"}).json()["field"] == "amount"


def test_readers_and_other_teams_write_nothing(acme, rival, as_token, pods, fleet):
    adjustment = Adjustment.objects.get()
    for client, code in ((as_token(acme, Scope.READ), 403), (as_token(rival, Scope.OPERATE), 404)):
        assert post(client, BILLS, {"account": pods.pk, "text": CSV}).status_code == code
        assert post(client, f"{BILLS}ask/", {"account": pods.pk}).status_code == code
        assert post(client, f"{ADJUSTMENTS}{adjustment.pk}/reverse/", {}).status_code == code
    assert as_token(rival).get(BILLS).json()["results"] == []
    assert as_token(rival).get(ADJUSTMENTS).json()["results"] == []
    assert Adjustment.objects.count() == 1
