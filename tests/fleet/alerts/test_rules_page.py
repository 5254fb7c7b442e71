"""The rules on their pages: what holds, own thresholds, and how often they would have fired."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.alerts.models import Rule
from fleet.alerts.preview import Preview
from fleet.alerts.preview_words import preview_text
from fleet.telemetry.models import MachineEvent

LIST = "/t/acme/alerts/rules/"
NOW = timezone.now()


def test_every_rule_is_listed_with_its_limits(acme, alice, as_user):
    Rule.objects.create(team=acme, kind="thermal", enabled=False, thresholds={"celsius": 81}, changed_by=alice)
    text = as_user(alice).get(LIST).text
    for said in (
        "GPU lost",
        "<b>a GPU is at 81 °C or above, or slows down for heat</b>",
        "Rackrent itself",
        ">off<",
        "alice",
    ):
        assert said in text


def test_own_values_are_kept_and_empty_ones_are_the_rules_own(acme, bob, as_user):
    client = as_user(bob)
    client.post(f"{LIST}thermal/", {"enabled": "on", "severity": "urgent", "for_seconds": "60", "celsius": "90"})
    row = Rule.objects.get()
    assert (row.enabled, row.severity, row.for_seconds, row.thresholds) == (True, "urgent", 60, {"celsius": 90})
    assert 'value="90"' in client.get(f"{LIST}thermal/").text
    client.post(f"{LIST}thermal/", {"severity": "", "for_seconds": "", "celsius": ""})
    row.refresh_from_db()
    assert (row.enabled, row.severity, row.for_seconds, row.thresholds) == (False, None, None, {})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"celsius": "900"}, "less than or equal to"),
        ({"celsius": "hot"}, "Enter a number"),
        ({"for_seconds": "-1"}, "greater than or equal to 0"),
        ({"severity": "dire"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field_and_nothing_is_lost(acme, bob, as_user, typed, said):
    answer = as_user(bob).post(f"{LIST}thermal/", {"enabled": "on", "celsius": "91", **typed})
    assert answer.status_code == 422
    assert said in answer.text
    assert next(iter(typed.values())) in answer.text
    assert not Rule.objects.exists()


def test_it_says_how_often_it_would_have_fired(acme, bob, as_user, make_instance):
    machine = make_instance(gpus=1)
    type(machine).objects.update(first_seen_at=timezone.now() - timedelta(days=40))
    for days in (1, 2, 40):
        MachineEvent.objects.create(instance=machine, at=timezone.now() - timedelta(days=days), kind="gpu_lost")
    assert "It would have fired 2 times on 1 machine in the last 30 days." in as_user(bob).get(f"{LIST}gpu_lost/").text


def test_a_script_asks_while_people_type(acme, bob, as_user):
    client = as_user(bob)
    assert 'id="preview"' in client.get(f"{LIST}thermal/preview/?enabled=on&celsius=80").text
    assert "Correct the values" in client.get(f"{LIST}thermal/preview/?celsius=900").text


@pytest.mark.parametrize(
    ("preview", "said"),
    [
        (Preview("x", NOW, 0, 0, NOW - timedelta(days=30), "events"), "It would not have fired in the last 30 days."),
        (Preview("x", NOW, 1, 1, NOW - timedelta(days=2), "events"), "It would have fired 1 time on 1 machine since"),
        (Preview("x", NOW, 3, 2, NOW - timedelta(days=30), "hours"), "Hours that follow each other count once."),
        (Preview("x", NOW, why="other_store"), "Readings are kept in another database"),
    ],
)
def test_the_words_of_a_preview(preview, said):
    assert said in preview_text(preview)


def test_a_viewer_looks_and_there_is_no_such_rule(acme, vera, bob, as_user):
    viewer = as_user(vera)
    assert "Change" not in viewer.get(LIST).text
    assert viewer.get(f"{LIST}thermal/").status_code == viewer.post(f"{LIST}thermal/").status_code == 403
    assert as_user(bob).get(f"{LIST}weather/").status_code == 404
