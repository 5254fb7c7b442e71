"""What a team changes of a rule: bounds, defaults, the record."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from fleet.alerts.choices import update_rule
from fleet.alerts.evaluate import chosen_rules
from fleet.alerts.models import Rule
from fleet.teams.models import AuditEntry
from tests.fleet.alerts.conftest import NOON


@pytest.fixture
def change(acme, alice, by):
    def call(kind: str = "thermal", **fields):
        values = {"enabled": True, **fields}
        return update_rule(actor=by(alice), team=acme, kind=kind, now=NOON, **values)

    return call


def chosen(team, kind):
    return next(one for one in chosen_rules(team) if one.rule.kind == kind)


def test_a_rule_has_its_defaults_until_a_team_changes_it(acme, change):
    assert (chosen(acme, "thermal").limits, chosen(acme, "thermal").for_seconds) == ({"celsius": 88}, 300)
    change(thresholds={"celsius": "80"}, for_seconds=60, severity="urgent")
    one = chosen(acme, "thermal")
    assert (one.limits, one.for_seconds, one.severity) == ({"celsius": 80}, 60, "urgent")


def test_the_default_itself_is_not_kept_so_that_a_later_release_may_better_it(acme, change):
    assert change(thresholds={"celsius": 88}).thresholds == {}


def test_another_team_keeps_its_own(rival, change):
    change(enabled=False)
    assert chosen(rival, "thermal").enabled


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"thresholds": {"celsius": 20}}, "celsius"),
        ({"thresholds": {"celsius": "nan"}}, "celsius"),
        ({"thresholds": {"celsius": "hot"}}, "celsius"),
        ({"thresholds": {"kelvin": 300}}, "kelvin"),
        ({"kind": "poll_failing", "thresholds": {"failures": 2.5}}, "failures"),
        ({"severity": "bad"}, "severity"),
        ({"for_seconds": -1}, "for_seconds"),
        ({"for_seconds": 100_000}, "for_seconds"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_its_field(change, fields, wrong):
    with pytest.raises(ValidationError) as refused:
        change(**fields)
    assert list(refused.value.message_dict) == [wrong]
    assert not Rule.objects.exists()


def test_a_change_is_on_record_and_none_is_not(change):
    change(enabled=False)
    change(enabled=False)
    entry = AuditEntry.objects.get(action="alert_rule.update")
    assert (entry.old, entry.new) == ({"enabled": True}, {"enabled": False})


def test_a_rule_that_does_not_exist_cannot_be_changed(change):
    with pytest.raises(KeyError):
        change(kind="astrology")
