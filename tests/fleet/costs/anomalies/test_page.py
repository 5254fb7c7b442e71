"""The page and the API of the rules about unusual money."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.costs.anomalies.models import AnomalyRule
from fleet.costs.anomalies.watch import watch_money
from fleet.teams.models import AuditEntry
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on

PAGE = "/t/acme/costs/anomalies/"
API = "/api/v1/anomaly-rules/"
BURN = f"{PAGE}costs_burn_rate/"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


@pytest.fixture
def burst(make_instance, charge, acme, summed, time_machine):
    """$240 a day for eleven days with one of $720, and $30 an hour now."""
    time_machine.move_to(NOW, tick=False)
    machine = make_instance(name="train-01", first_seen_at=november(1), price_per_hour=Decimal(30))
    charge(machine, "30")
    for day in range(1, 16):
        spend_on(acme, on(day), 720 if day == 12 else 240, instance=machine)
    return machine


def test_it_says_what_is_open_what_is_looked_for_and_what_would_have_fired(vera, as_user, acme, burst):
    watch_money(team=acme, now=NOW)
    text = text_of(as_user(vera).get(PAGE))
    assert "1 thing about the money is unusual" in text
    assert "Money is spent faster than usual $30.00 an hour, 3.0 times the $10.00" in text
    assert "an hour costs 1.5 times the median of seven days and it comes to at least $50.00 a day" in text
    assert "It would have fired once, and been open on 1 of 10 days" in text


def test_what_is_over_stays_listed(vera, as_user, acme, burst):
    watch_money(team=acme, now=NOW)
    AnomalyRule.objects.create(team=acme, kind="costs_burn_rate", enabled=False, changed_at=NOW)
    watch_money(team=acme, now=NOW + timedelta(minutes=10))
    text = text_of(as_user(vera).get(PAGE))
    assert "Nothing about the money is unusual" in text
    assert "its rule was switched off" in text


def test_a_team_of_which_nothing_is_counted_is_told_so(vera, as_user, acme):
    text = text_of(as_user(vera).get(PAGE))
    assert "There is too little history to say how often it would have fired." in text


def test_another_team_learns_nothing(charlie, as_user, acme, burst):
    client = as_user(charlie)
    assert client.get(PAGE).status_code == client.get(BURN).status_code == 404


def test_an_operator_changes_a_rule_and_it_is_on_record(bob, as_user, acme, burst):
    answer = as_user(bob).post(BURN, {"enabled": "on", "factor": "4", "least_a_day": ""})
    assert answer.status_code == 302
    row = AnomalyRule.objects.get()
    assert (row.enabled, row.thresholds, row.changed_by) == (True, {"factor": 4.0}, bob)
    entry = AuditEntry.objects.get(action="anomaly_rule.update")
    assert (entry.old, entry.new) == ({"thresholds": {}}, {"thresholds": {"factor": 4.0}})


def test_a_viewer_changes_nothing(vera, as_user, acme, burst):
    assert as_user(vera).post(BURN, {"enabled": "on", "factor": "4"}).status_code == 403
    assert not AnomalyRule.objects.exists()


@pytest.mark.parametrize("typed", ["1", "x", "21", "nan"])
def test_a_threshold_out_of_bounds_is_refused_by_name(bob, as_user, acme, burst, typed):
    answer = as_user(bob).post(BURN, {"enabled": "on", "factor": typed})
    assert answer.status_code == 422
    assert 'id="id_factor_error"' in answer.content.decode() or 'aria-invalid="true"' in answer.content.decode()
    assert not AnomalyRule.objects.exists()


def test_the_preview_follows_what_is_typed(bob, as_user, acme, burst):
    asked = as_user(bob).get(f"{BURN}preview/", {"factor": "4"})
    assert "It would not have fired on any of 10 days." in text_of(asked)
    asked = as_user(bob).get(f"{BURN}preview/", {"factor": "2"})
    assert "It would have fired once" in text_of(asked)


def test_a_rule_that_does_not_exist_is_not_found(bob, as_user, acme):
    assert as_user(bob).get(f"{PAGE}nonsense/").status_code == 404
    assert as_user(bob).get(f"{API}nonsense/").status_code == 404


def test_the_api_does_what_the_page_does(bob, as_user, acme, burst):
    client = as_user(bob)
    first = client.get(API).json()["results"][0]
    assert (first["kind"], first["enabled"], first["fired"]["days"]) == ("costs_burn_rate", True, ["2026-11-12"])
    changed = client.patch(
        f"{API}costs_burn_rate/", {"thresholds": {"factor": 4}}, content_type="application/json"
    ).json()
    assert changed["thresholds"][0]["value"] == 4
    assert changed["fired"]["times"] == 0
    back = client.patch(
        f"{API}costs_burn_rate/", {"thresholds": {"factor": None}}, content_type="application/json"
    ).json()
    assert back["thresholds"][0]["value"] == 1.5


def test_the_api_names_what_is_wrong(bob, vera, as_user, acme):
    answer = as_user(bob).patch(f"{API}costs_burn_rate/", {"thresholds": {"speed": 4}}, content_type="application/json")
    assert answer.status_code == 400
    assert "speed" in answer.content.decode()
    refused = as_user(vera).patch(f"{API}costs_burn_rate/", {"enabled": False}, content_type="application/json")
    assert refused.status_code == 403
