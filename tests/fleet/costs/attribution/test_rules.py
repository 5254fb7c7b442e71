"""What a rule may say, and that every change of one is in the audit log."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from fleet.costs.attribution import rules
from fleet.costs.attribution.models import AttributionRule
from fleet.costs.attribution.rules import RuleSaid, change_rule, end_rule, move_rule
from fleet.inventory.models import ProviderAccount
from fleet.teams.models import AuditEntry, Project
from tests.fleet.costs.attribution.conftest import HOUR, NOON


def refused(rule, **said) -> list[str]:
    with pytest.raises(ValidationError) as error:
        rule(**said)
    assert not AttributionRule.objects.exists()
    return list(error.value.message_dict)


def test_a_rule_that_gives_nothing_is_refused(rule):
    assert refused(rule, name_pattern="train-*") == ["project"]


def test_a_value_needs_its_label(rule, project):
    assert refused(rule, label_value="x", project=project) == ["label_key"]


def test_things_of_other_teams_are_refused(rule, rival, charlie, project):
    theirs = Project.objects.create(team=rival, name="Secret", slug="secret")
    account = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
    assert refused(rule, project=theirs) == ["project"]
    assert refused(rule, owner=charlie) == ["owner"]
    assert refused(rule, account=account, project=project) == ["account"]


def test_an_archived_project_gets_no_rule(rule, project):
    project.archived_at = NOON
    project.save()
    assert refused(rule, project=project) == ["project"]


def test_only_so_many_rules_fit(rule, project, monkeypatch):
    monkeypatch.setattr(rules, "MOST_RULES", 1)
    rule(project=project)
    with pytest.raises(ValidationError, match="At most 1 rules"):
        rule(project=project)


def test_every_change_is_in_the_audit_log(rule, project, bob, alice, by):
    first, second = rule(project=project, name_pattern="a-*"), rule(owner=bob)
    changed = change_rule(actor=by(alice), rule=first, said=RuleSaid(owner=bob), now=NOON + HOUR)
    move_rule(actor=by(alice), rule=second, up=True, now=NOON + HOUR)
    end_rule(actor=by(alice), rule=AttributionRule.objects.get(ended_at=None, order=1), now=NOON + 2 * HOUR)
    lines = AuditEntry.objects.filter(action__startswith="attribution_rule.").order_by("pk")
    assert [line.action for line in lines] == [
        "attribution_rule.add",
        "attribution_rule.add",
        "attribution_rule.change",
        "attribution_rule.move",
        "attribution_rule.end",
    ]
    assert lines[2].old["project"] == "Vision"
    assert lines[2].new["owner"] == "bob"
    assert (lines[3].old, lines[3].new) == ({"order": 2}, {"order": 1})
    assert changed is not None
