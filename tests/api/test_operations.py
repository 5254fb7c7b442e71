"""Acts over the API: what is asked for, what is refused and with which code, and many at once."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.inventory.models import Hold, HoldKind, Instance, ProviderAccount
from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.inventory.operations.models import Operation
from fleet.teams.models import AuditEntry, Scope
from tests.api.test_schema import hold_to_schema, schema  # noqa: F401

OPERATIONS = "/api/v1/operations/"


@pytest.fixture
def lab(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="sandbox", name="Lab", monitor_only=False)


@pytest.fixture
def machine(lab, make_instance) -> Instance:
    made: Instance = make_instance(name="lab-01", account=lab, price_per_hour="2.50")
    return made


@pytest.fixture
def script(acme, as_token):
    return as_token(acme, Scope.OPERATE)


def post(client, address, body):
    return client.post(address, json.dumps(body), content_type="application/json")


def test_a_stop_is_asked_for_and_followed(script, machine):
    answer = post(script, OPERATIONS, {"kind": "stop", "instance": machine.pk})
    assert answer.status_code == 201
    assert (answer.json()["state"], answer.json()["price_per_hour"]) == ("requested", "2.500000")
    whole = script.get(f"{OPERATIONS}{answer.json()['id']}/").json()
    assert [event["says"] for event in whole["events"]] == ["Asked for"]
    assert AuditEntry.objects.get(action="operation.requested").via == "api"


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"kind": "terminate"}, "loses_data", "accept_loss"),
        ({"kind": "stop", "account": {"monitor_only": True}}, "monitor_only", None),
        ({"kind": "stop", "machine": {"managed": False}}, "unmanaged", None),
        ({"kind": "stop", "account": {"kind": "manual"}}, "unsupported", None),
    ],
)
def test_what_must_not_be_begun_has_a_code_of_its_own(script, machine, body, code, field):
    Instance.objects.filter(pk=machine.pk).update(**body.pop("machine", {"managed": True}))
    ProviderAccount.objects.filter(pk=machine.account_id).update(**body.pop("account", {"monitor_only": False}))
    answer = post(script, OPERATIONS, {**body, "instance": machine.pk})
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (409, code, field)
    assert not Operation.objects.exists()


def test_a_hold_is_overridden_by_an_admin_only_and_the_reason_is_kept(acme, as_token, script, machine, bob):
    Hold.objects.create(instance=machine, kind=HoldKind.PERSON, owner=bob, reason="sweep")
    asked = {"kind": "stop", "instance": machine.pk}
    assert post(script, OPERATIONS, asked).json()["error"] == "held"
    assert post(script, OPERATIONS, {**asked, "override_reason": "mine"}).json()["error"] == "not_admin"
    answer = post(as_token(acme, Scope.ADMIN), OPERATIONS, {**asked, "override_reason": "budget is spent"})
    assert (answer.status_code, answer.json()["override_reason"]) == (201, "budget is spent")


def test_an_argument_that_the_act_does_not_take_is_refused(script, machine):
    answer = post(script, OPERATIONS, {"kind": "start", "instance": machine.pk, "accept_loss": True})
    assert (answer.status_code, answer.json()["field"]) == (400, "accept_loss")
    answer = post(script, OPERATIONS, {"kind": "save_image", "instance": machine.pk})
    assert (answer.status_code, answer.json()["field"]) == (400, "name")


def test_many_at_once_are_answered_one_by_one(request, script, machine, make_instance, lab):
    other = make_instance(name="lab-02", account=lab, managed=False)
    body = {"kind": "stop", "instances": [other.pk, machine.pk]}
    answer = post(script, f"{OPERATIONS}bulk/", body)
    first, second = answer.json()["results"]
    assert (first["instance"], first["operation"]["state"], first["refusal"]) == (machine.pk, "requested", None)
    assert (second["operation"], second["refusal"]["error"]) == (None, "unmanaged")
    hold_to_schema(request.getfixturevalue("schema"), f"{OPERATIONS}bulk/", answer, "post")


def test_a_list_with_a_slip_in_it_begins_nothing(script, machine, rival, account):
    theirs = Instance.objects.create(team=rival, account=account, external_id="x", name="theirs")
    answer = post(script, f"{OPERATIONS}bulk/", {"kind": "stop", "instances": [machine.pk, theirs.pk]})
    assert (answer.status_code, answer.json()["field"]) == (404, "instances")
    assert not Operation.objects.exists()


def test_a_machine_is_rented_at_the_price_of_its_offer(request, script, lab, acme, project):
    source = OfferSource.objects.create(team=acme, kind=SourceKind.LIVE, account=lab)
    offer = {"external_id": "sb.l4x1", "region": "ap-tokyo-1", "market": "on_demand", "currency": "USD"}
    Offer.objects.create(source=source, key="k", price_per_hour="0.71", seen_at=timezone.now(), **offer)
    body = {"account": lab.pk, "offer": "sb.l4x1", "region": "ap-tokyo-1", "name": "try-01", "project": project.slug}
    answer = post(script, f"{OPERATIONS}launch/", {**body, "user_data": "echo s3cret"})
    assert (answer.status_code, answer.json()["price_per_hour"]) == (201, "0.710000")
    assert (answer.json()["instance"], answer.json()["machine"]) == (None, "try-01")
    assert "s3cret" not in answer.content.decode()
    assert Operation.objects.get().price_per_hour == Decimal("0.71")
    hold_to_schema(request.getfixturevalue("schema"), f"{OPERATIONS}launch/", answer, "post")


def test_an_operation_is_abandoned_with_a_reason(request, script, machine):
    pk = post(script, OPERATIONS, {"kind": "stop", "instance": machine.pk}).json()["id"]
    answer = post(script, f"{OPERATIONS}{pk}/abandon/", {"reason": "stopped in the console"})
    assert (answer.json()["state"], answer.json()["error_detail"]) == ("failed", "stopped in the console")
    hold_to_schema(request.getfixturevalue("schema"), f"{OPERATIONS}{{id}}/abandon/", answer, "post")
    assert script.get(OPERATIONS, {"open": "true"}).json()["results"] == []
    again = post(script, f"{OPERATIONS}{pk}/abandon/", {"reason": "once more"})
    assert (again.status_code, again.json()["error"]) == (409, "ended")


def test_charlie_sees_and_does_nothing(as_user, charlie, machine, script):
    pk = post(script, OPERATIONS, {"kind": "stop", "instance": machine.pk}).json()["id"]
    client = as_user(charlie)
    assert client.get(OPERATIONS).json()["results"] == []
    assert client.get(f"{OPERATIONS}{pk}/").status_code == 404
    assert Operation.objects.get().is_open


def test_who_only_reads_asks_for_nothing(acme, as_token, machine):
    assert post(as_token(acme), OPERATIONS, {"kind": "stop", "instance": machine.pk}).status_code == 403
