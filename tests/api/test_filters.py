from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.models import GPU, Hold, HoldKind
from fleet.providers.base import InstanceState, Tenancy
from tests.api.resources import LISTS, first_detail


@pytest.fixture
def named(acme, as_token):
    """named(state="running") -> the names of the machines that the filter leaves."""

    def ask(**parameters) -> list[str]:
        answer = as_token(acme).get("/api/v1/instances/", parameters)
        assert answer.status_code == 200, answer.text
        return [row["name"] for row in answer.json()["results"]]

    return ask


@pytest.fixture
def three(make_instance, project, bob):
    make_instance(
        name="one",
        gpu_model="H100 SXM",
        tenancy=Tenancy.DEDICATED_HOST,
        project=project,
        owner=bob,
        labels={"purpose": "training"},
    )
    make_instance(name="two", state=InstanceState.STOPPED, tenancy=Tenancy.FRACTION, region="eu", managed=False)
    make_instance(name="three", gone_at=timezone.now(), state=InstanceState.TERMINATED)


@pytest.mark.parametrize(
    ("parameters", "left"),
    [
        ({}, ["one", "two"]),
        ({"gone": "true"}, ["three"]),
        ({"gone": "any"}, ["one", "two", "three"]),
        ({"gone": "false"}, ["one", "two"]),
        ({"state": "running"}, ["one"]),
        ({"state": "running,stopped"}, ["one", "two"]),
        ({"exclusive": "true"}, ["one"]),
        ({"exclusive": "false"}, ["two"]),
        ({"tenancy": "fraction"}, ["two"]),
        ({"region": "eu"}, ["two"]),
        ({"managed": "false"}, ["two"]),
        ({"project": "vision"}, ["one"]),
        ({"project": "none"}, ["two"]),
        ({"owner": "bob"}, ["one"]),
        ({"gpu_model": "h100 sxm"}, ["one"]),
        ({"label": "purpose"}, ["one"]),
        ({"label": "purpose:training"}, ["one"]),
        ({"label": "purpose:serving"}, []),
        ({"search": "TW"}, ["two"]),
        ({"search": "h100"}, ["one"]),
        ({"provider": "manual"}, ["one", "two"]),
        ({"provider": "aws"}, []),
        ({"account": "999999"}, []),
    ],
)
def test_machines_are_filtered(three, named, parameters, left):
    assert named(**parameters) == left


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"state": "runing"}, "state"),
        ({"state": "running,runing"}, "state"),
        ({"account": "x"}, "account"),
        ({"account": "0"}, "account"),
        ({"account": "99999999999999999999"}, "account"),
        ({"exclusive": "maybe"}, "exclusive"),
        ({"gone": "yes"}, "gone"),
        ({"started_since": "yesterday"}, "started_since"),
        ({"started_since": "2026-11-30T08:00:00 00:00"}, "started_since"),
        ({"search": "a\0b"}, "search"),
        ({"label": ":x"}, "label"),
        ({"label": "a\0"}, "label"),
        ({"owner": ""}, "owner"),
        ({"owner": " "}, "owner"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(acme, as_token, parameters, field):
    answer = as_token(acme).get("/api/v1/instances/", parameters)
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, "invalid", field)
    assert answer.json()["detail"]


def test_an_unreadable_time_says_how_to_write_it(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/", {"started_since": "2026-11-30T08:00:00 00:00"})
    assert "%2B" in answer.json()["detail"]


@pytest.mark.parametrize("address", LISTS)
def test_a_mistyped_filter_is_refused_by_every_list(fleet, alice, as_user, address):
    answer = as_user(alice).get(address, {"sttate": "running"})
    assert (answer.status_code, answer.json()["field"]) == (400, "sttate")


def test_a_mistyped_filter_is_told_its_likely_name(acme, as_token):
    assert "`state`" in as_token(acme).get("/api/v1/instances/", {"sttate": "running"}).json()["detail"]


@pytest.mark.parametrize("address", LISTS)
def test_a_row_takes_no_filter(fleet, alice, as_user, address):
    client = as_user(alice)
    answer = client.get(first_detail(client, address), {"state": "running"})
    assert (answer.status_code, answer.json()["field"]) == (400, "state")


def test_a_filter_given_twice_is_refused(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/?state=running&state=stopped")
    assert (answer.status_code, answer.json()["field"]) == (400, "state")


def test_gpus_are_filtered_by_machine_kind_and_presence(acme, make_instance, as_token):
    first, second = make_instance(name="a", gpus=2), make_instance(name="b", gpus=1)
    GPU.objects.create(instance=second, uuid="MIG-1", index=1, mig_parent_uuid=second.gpus.get().uuid)
    first.gpus.filter(index=1).update(removed_at=timezone.now())
    client = as_token(acme)

    def count(**parameters):
        return len(client.get("/api/v1/gpus/", parameters).json()["results"])

    assert count() == 4
    assert count(instance=first.pk) == 2
    assert count(instance=f"{first.pk},{second.pk}", removed="false") == 3
    assert count(removed="true") == 1
    assert count(mig="true") == 1
    assert count(mig="false") == 3


def test_holds_that_keep_a_machine_now(acme, bob, make_instance, as_token):
    instance, now = make_instance(), timezone.now()
    forever = Hold.objects.create(instance=instance, kind=HoldKind.JOB)
    Hold.objects.create(instance=instance, kind=HoldKind.PERSON, owner=bob, ended_at=now)
    Hold.objects.create(instance=instance, kind=HoldKind.PERSON, owner=bob, expires_at=now - timedelta(seconds=1))
    Hold.objects.create(instance=instance, kind=HoldKind.PERSON, owner=bob, started_at=now + timedelta(hours=1))
    client = as_token(acme)
    active = client.get("/api/v1/holds/", {"active": "true"}).json()["results"]
    assert [row["id"] for row in active] == [forever.pk]
    assert len(client.get("/api/v1/holds/", {"active": "false"}).json()["results"]) == 3


def test_times_are_utc_whatever_zone_a_person_is_in(fleet, acme, as_token):
    with timezone.override("Asia/Shanghai"):
        row = as_token(acme).get(f"/api/v1/instances/{fleet.instance.pk}/").json()
    assert row["started_at"] == "2026-11-30T08:00:00Z"
