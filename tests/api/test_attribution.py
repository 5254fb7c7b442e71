"""Whose money it is, over the API: rules, spans, the past attributed again, shared machines."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import AttributionRule, AttributionSpan, MachineSplit, Reattribution, UnixUser
from fleet.costs.attribution.sync import sync_attribution
from fleet.teams.models import Scope
from tests.fleet.costs.seeding import spend_on

RULES = "/api/v1/attribution-rules/"
SPANS = "/api/v1/attribution-spans/"
AGAIN = "/api/v1/reattributions/"
SPLITS = "/api/v1/machine-splits/"
USERS = "/api/v1/unix-users/"
JSON = "application/json"
DAY = timedelta(days=1)


@pytest.fixture
def admin(acme, as_token):
    return as_token(acme, Scope.ADMIN)


@pytest.fixture
def machine(acme, make_instance):
    instance = make_instance(first_seen_at=timezone.now() - 5 * DAY)
    sync_attribution(team=acme, now=timezone.now() - 4 * DAY)
    return instance


def test_a_rule_is_previewed_added_changed_moved_and_ended(admin, machine, project, alice):
    asked = {"name_pattern": "train-*", "project": "vision"}
    told = admin.post(f"{RULES}preview/", asked, content_type=JSON).json()
    assert (told["matched"], [row["name"] for row in told["moved"]]) == (1, ["train-01"])
    assert told["moved"][0]["after"]["project"] == project.pk
    assert not AttributionRule.objects.exists()
    made = admin.post(RULES, asked, content_type=JSON).json()
    other = admin.post(RULES, {"owner": "alice"}, content_type=JSON).json()
    changed = admin.patch(f"{RULES}{made['id']}/", {"label_key": "x"}, content_type=JSON).json()
    assert (changed["replaces"], changed["name_pattern"], changed["order"]) == (made["id"], "train-*", 1)
    assert admin.patch(f"{RULES}{made['id']}/", {"label_key": "y"}, content_type=JSON).status_code == 409
    moved = admin.post(f"{RULES}{other['id']}/move/", {"direction": "up"}, content_type=JSON).json()
    assert (moved["order"], moved["owner"]) == (1, "alice")
    assert admin.post(f"{RULES}{moved['id']}/move/", {"direction": "up"}, content_type=JSON).status_code == 409
    assert admin.delete(f"{RULES}{moved['id']}/").status_code == 204
    in_force = admin.get(RULES, {"in_force": "true"}).json()["results"]
    assert [row["label_key"] for row in in_force] == ["x"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "project"),
        ({"project": "secret"}, "project"),
        ({"owner": "charlie"}, "owner"),
        ({"account": 999_999, "project": "vision"}, "account"),
        ({"label_value": "x", "project": "vision"}, "label_key"),
        ({"labels": {"a,b": "c"}}, "labels"),
        ({"split": "by moonlight"}, "split"),
        ({"nmae_pattern": "x"}, "nmae_pattern"),
    ],
)
def test_a_rule_that_cannot_be_names_the_field(admin, project, charlie, asked, field):
    answer = admin.post(RULES, asked, content_type=JSON)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not AttributionRule.objects.exists()


def test_spans_of_a_machine(admin, machine, project):
    admin.post(RULES, {"project": "vision"}, content_type=JSON)
    rows = admin.get(SPANS, {"instance": machine.pk}).json()["results"]
    assert [(row["project"], row["source"], row["end"] is None) for row in rows] == [
        (None, "machine", False),
        ("vision", "rule", True),
    ]
    now = {"since": timezone.now().isoformat()}
    assert len(admin.get(SPANS, now).json()["results"]) == 1


def test_the_past_is_previewed_and_attributed_again(admin, acme, machine, project):
    until = hour_of(timezone.now()) - DAY
    spend_on(acme, (until - 2 * DAY).date(), "24", instance=machine)
    asked = {
        "instances": [machine.pk], "start": (until - 3 * DAY).isoformat(), "until": until.isoformat(),
        "project": "vision", "reason": "It was for Vision.",
    }  # fmt: skip
    plan = admin.post(f"{AGAIN}preview/", asked, content_type=JSON).json()
    assert plan["moved"] == {"USD": "24.00"}
    assert plan["instances"] == [machine.pk]
    assert not Reattribution.objects.exists()
    made = admin.post(AGAIN, asked, content_type=JSON)
    assert made.status_code == 201
    entry = made.json()
    assert entry["before"] == [{"project": None, "owner": None, "amounts": {"USD": "24.00"}}]
    assert (entry["after"], entry["project"], entry["instances"]) == (None, "vision", [machine.pk])
    assert admin.get(AGAIN, {"instance": machine.pk}).json()["results"] == [entry]
    assert AttributionSpan.objects.filter(instance=machine, source="again").count() == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [({"instances": []}, "instances"), ({"instances": [999_999]}, "instances"), ({"reason": ""}, "reason"), ({"rule": 77}, "rule")],
)  # fmt: skip
def test_what_cannot_be_attributed_again_names_the_field(admin, machine, change, field):
    until = hour_of(timezone.now())
    asked = {"instances": [machine.pk], "start": (until - DAY).isoformat(), "until": until.isoformat(), "reason": "x"}
    answer = admin.post(AGAIN, {**asked, **change}, content_type=JSON)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_a_machine_is_split_and_left_to_its_rule_again(acme, machine, as_token):
    operator = as_token(acme, Scope.OPERATE)
    made = operator.post(SPLITS, {"instance": machine.pk, "split": "measured"}, content_type=JSON)
    assert made.json() == {"instance": machine.pk, "team": "acme", "split": "measured"}
    assert operator.get(f"{SPLITS}{machine.pk}/").json() == made.json()
    assert operator.delete(f"{SPLITS}{machine.pk}/").status_code == 204
    assert not MachineSplit.objects.exists()


def test_a_user_is_mapped_and_forgotten(acme, machine, alice, as_token):
    operator = as_token(acme, Scope.OPERATE)
    made = operator.post(USERS, {"name": "ada", "owner": "alice", "instance": machine.pk}, content_type=JSON).json()
    assert (made["owner"], made["instance"]) == ("alice", machine.pk)
    refused = operator.post(USERS, {"name": "a da", "owner": "alice"}, content_type=JSON)
    assert (refused.status_code, refused.json()["field"]) == (400, "name")
    assert operator.delete(f"{USERS}{made['id']}/").status_code == 204
    assert not UnixUser.objects.exists()


def test_operators_write_no_rules_and_others_see_none(acme, rival, machine, project, as_token):
    rule = AttributionRule.objects.create(team=acme, order=1, project=project)
    operator, stranger = as_token(acme, Scope.OPERATE), as_token(rival, Scope.ADMIN)
    for address, body in ((RULES, {"project": "vision"}), (AGAIN, {}), (f"{RULES}preview/", {})):
        assert operator.post(address, body, content_type=JSON).status_code == 403
    assert operator.delete(f"{RULES}{rule.pk}/").status_code == 403
    assert operator.get(RULES).json()["results"] != []
    for address in (RULES, SPANS, AGAIN, SPLITS, USERS):
        assert stranger.get(address).json()["results"] == []
    assert stranger.delete(f"{RULES}{rule.pk}/").status_code == 404
    assert stranger.post(SPLITS, {"instance": machine.pk, "split": "holds"}, content_type=JSON).status_code == 404
    rule.refresh_from_db()
    assert rule.ended_at is None
