"""What people set, before the first rule that matches, before nobody."""

from __future__ import annotations

import pytest

from fleet.costs.attribution.desired import Machine, Rule, desired_attribution

VISION, SPEECH, ALICE, BOB = 1, 2, 11, 12


def machine(**more):
    return Machine(**{"pk": 7, "name": "train-01", "account_id": 3, **more})


def whose(found):
    return found.project_id, found.owner_id, found.source, found.rule_id


def test_nobody_and_no_rule():
    assert whose(desired_attribution(machine(), [])) == (None, None, "machine", None)


def test_the_first_rule_that_matches_is_the_only_one():
    rules = [
        Rule(pk=1, name_pattern="serve-*", project_id=SPEECH),
        Rule(pk=2, name_pattern="train-*", project_id=VISION),
        Rule(pk=3, project_id=SPEECH, owner_id=BOB),
    ]
    assert whose(desired_attribution(machine(), rules)) == (VISION, None, "rule", 2)


def test_what_people_set_holds_and_a_rule_fills_in_what_they_left_open():
    rules = [Rule(pk=1, project_id=SPEECH, owner_id=BOB, labels={"team": "a", "cost": "x"}, split="holds")]
    found = desired_attribution(machine(project_id=VISION, labels={"cost": "y"}), rules)
    assert whose(found) == (VISION, BOB, "manual", 1)
    assert found.labels == {"team": "a", "cost": "y"}
    assert found.split == "holds"
    assert desired_attribution(machine(split="whole"), rules).split == "whole"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(pk=1), True),
        (Rule(pk=1, name_pattern="TRAIN-??"), True),
        (Rule(pk=1, name_pattern="train"), False),
        (Rule(pk=1, account_id=3), True),
        (Rule(pk=1, account_id=4), False),
        (Rule(pk=1, label_key="purpose"), True),
        (Rule(pk=1, label_key="purpose", label_value="training"), True),
        (Rule(pk=1, label_key="purpose", label_value="serving"), False),
        (Rule(pk=1, label_key="Name", label_value="box"), True),
        (Rule(pk=1, label_key="zone", label_value="theirs"), False),
        (Rule(pk=1, label_key="zone", label_value="ours"), True),
        (Rule(pk=1, label_key="absent"), False),
        (Rule(pk=1, name_pattern="train-*", account_id=3, label_key="purpose", label_value="training"), True),
        (Rule(pk=1, name_pattern="train-*", account_id=4, label_key="purpose", label_value="training"), False),
    ],
)
def test_all_conditions_have_to_hold(rule, expected):
    labelled = machine(
        labels={"purpose": "training", "zone": "ours"}, provider_labels={"Name": "box", "zone": "theirs"}
    )
    assert rule.matches(labelled) is expected


def test_labels_of_the_provider_are_matched_and_not_taken_over():
    assert desired_attribution(machine(provider_labels={"Name": "box"}), []).labels == {}


def test_why_it_is_somebodys_moves_no_money():
    by_rule = desired_attribution(machine(), [Rule(pk=1, project_id=VISION)])
    by_hand = desired_attribution(machine(project_id=VISION), [])
    assert by_rule.source != by_hand.source
    assert by_rule.money == by_hand.money
