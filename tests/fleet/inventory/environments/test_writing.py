"""What people write of environments: each edit leaves its line with both wordings, and nobody's words are lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of
from fleet.inventory.environments.writing import (
    EnvironmentRefused,
    Overtaken,
    create_template,
    edit_environment,
    remove_environment,
)
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.environments.conftest import NOON

LATER = NOON + timedelta(minutes=5)


def edited(by_bob, image, now=NOON, seen=None, **values):
    return edit_environment(actor=by_bob, environment=environment_of(image), values=values, now=now, seen=seen)


def test_the_first_edit_makes_the_row_and_each_leaves_a_line(by_bob, image, bob):
    edited(by_bob, image, notes="first")
    row = edited(by_bob, image, now=LATER, notes="second", commands="python train.py")
    assert (row.notes, row.edited_at, row.edited_by) == ("second", LATER, bob)
    first, second = AuditEntry.objects.filter(action="environment.update").order_by("pk")
    assert (first.old, first.new["notes"]) == ({}, "first")
    assert (second.old, second.new) == ({"notes": "first"}, {"notes": "second", "commands": "python train.py"})
    assert Environment.objects.count() == 1


def test_who_typed_versions_stands_apart_from_who_edited(by_bob, image, bob):
    edited(by_bob, image, typed={"python": "3.10"})
    row = edited(by_bob, image, now=LATER, notes="x")
    assert (row.typed_at, row.typed_by, row.edited_at) == (NOON, bob, LATER)


def test_an_edit_that_changes_nothing_leaves_no_line(by_bob, image):
    edited(by_bob, image, notes="first")
    edited(by_bob, image, now=LATER, notes="first")
    assert AuditEntry.objects.filter(action="environment.update").count() == 1


def test_nobody_overwrites_what_they_have_not_seen(by_bob, image):
    seen = edited(by_bob, image, notes="first").edited_at
    edited(by_bob, image, now=LATER, notes="somebody else's")
    with pytest.raises(Overtaken):
        edited(by_bob, image, now=LATER, seen=seen, notes="mine")
    assert Environment.objects.get().notes == "somebody else's"


def test_a_template_has_a_name_of_its_own(by_bob, acme):
    create_template(actor=by_bob, team=acme, values={"name": "vllm", "reference": "org/vllm:1"}, now=NOON)
    with pytest.raises(EnvironmentRefused) as refusal:
        create_template(actor=by_bob, team=acme, values={"name": "vllm"}, now=NOON)
    assert refusal.value.field == "name"
    assert AuditEntry.objects.get(action="environment.create").new["reference"] == "org/vllm:1"


def test_what_is_removed_stays_readable_in_the_log(by_bob, image):
    remove_environment(actor=by_bob, environment=edited(by_bob, image, notes="precious", price_per_month=None))
    assert not Environment.objects.exists()
    assert AuditEntry.objects.get(action="environment.remove").old["notes"] == "precious"
