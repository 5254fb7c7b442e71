"""How a machine is split and whose its users are, as people say it."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from fleet.costs.attribution.models import AttributionSpan, UnixUser
from fleet.costs.attribution.sharing import map_unix_user, set_split, unmap_unix_user
from fleet.costs.attribution.sync import sync_attribution
from fleet.teams.models import AuditEntry
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON


def splits(instance):
    return list(AttributionSpan.objects.filter(instance=instance).order_by("period").values_list("split", flat=True))


def test_a_machine_is_split_from_the_hour_on(acme, machine, rule, bob, by):
    instance = machine()
    rule(split="measured", now=NOON - 2 * HOUR)
    assert set_split(actor=by(bob), instance=instance, split="holds", now=NOON + MINUTE)
    assert not set_split(actor=by(bob), instance=instance, split="holds", now=NOON + MINUTE)
    assert splits(instance) == ["measured", "holds"]
    assert set_split(actor=by(bob), instance=instance, split="", now=NOON + HOUR)
    assert splits(instance) == ["measured", "holds", "measured"]
    lines = AuditEntry.objects.filter(action="instance.split").order_by("pk")
    assert [(line.old, line.new) for line in lines] == [
        ({"split": ""}, {"split": "holds"}),
        ({"split": "holds"}, {"split": ""}),
    ]


def test_a_user_is_mapped_once_for_the_team_and_once_for_a_machine(acme, machine, alice, bob, project, by):
    instance = machine()
    map_unix_user(actor=by(alice), team=acme, name="ada", owner=alice)
    map_unix_user(actor=by(alice), team=acme, name="ada", owner=alice, instance=instance)
    again = map_unix_user(actor=by(alice), team=acme, name="ada", owner=bob, project=project)
    assert UnixUser.objects.count() == 2
    line = AuditEntry.objects.filter(action="unix_user.map").latest("pk")
    assert (line.old["owner"], line.new["owner"], line.new["project"]) == ("alice", "bob", "Vision")
    assert unmap_unix_user(actor=by(alice), mapping=again)
    assert not unmap_unix_user(actor=by(alice), mapping=again)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "ada lovelace"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"owner": None}, "owner"),
    ],
)
def test_what_names_no_user_or_nobody_is_refused(acme, alice, by, said, field):
    with pytest.raises(ValidationError) as refused:
        map_unix_user(actor=by(alice), team=acme, **{"name": "ada", "owner": alice, **said})
    assert list(refused.value.message_dict) == [field]


def test_machines_and_people_of_others_are_refused(acme, rival, machine, alice, charlie, by):
    theirs = machine("theirs", team=rival)
    sync_attribution(team=rival, now=NOON)
    for said in ({"instance": theirs, "owner": alice}, {"owner": charlie}):
        with pytest.raises(ValidationError):
            map_unix_user(actor=by(alice), team=acme, name="ada", **said)
