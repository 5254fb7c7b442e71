"""The page of a dry run: what it says, who may see it, and what it does with a large fleet and with nonsense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from fleet.idle.dryrun import views
from fleet.idle.dryrun.tasks import read_history
from fleet.idle.policies.models import IdlePolicy
from tests.fleet.idle.dryrun.recording import hours, record

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
SIGNS = "w" * 12 + hours(6) + "w" + "." * 20 + "w" * 12


@pytest.fixture
def now(rented, policy, bob, time_machine):
    """One stop is right, and one is wrong: rp-<b> was used again ten minutes after it."""
    end = record(rented("rp-<b>", owner=bob), SIGNS, MONDAY)
    time_machine.move_to(end, tick=False)
    return end


def page(client, tried, **asked):
    return client.get(reverse("idle_dry_run", args=["acme", tried.pk]), asked)


def test_it_says_what_would_have_been_stopped(now, policy, alice, as_user):
    text = page(as_user(alice), policy).content.decode()
    assert "Training nodes, dry run: $26 back, 1 run hit" in text
    assert "on 1 machine, 1 rightly" in text
    assert "work came back 10 min after the stop" in text
    assert "less $2.00 for the run it hit" in text
    assert "Not yet: 1 days of readings are too few" in text or "are too few to learn from" in text


def test_names_from_providers_are_escaped(now, policy, alice, as_user):
    text = page(as_user(alice), policy).content.decode()
    assert "rp-&lt;b&gt;" in text
    assert "rp-<b>" not in text


def test_another_window_is_tried_without_changing_the_policy(now, policy, vera, as_user):
    text = page(as_user(vera), policy, window=10).content.decode()
    assert "Training nodes, dry run" in text
    policy.refresh_from_db()
    assert (policy.window_minutes, policy.recommended_at) == (60, None)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"window": "4"}, "An idle window has at least 5 minutes."),
        ({"window": "soon"}, "Give the idle window as whole minutes, as 60."),
        ({"days": "31"}, "Choose 7, 30 or 90 days."),
        ({"cost": "own", "gpu_hours": "-1"}, "A wrong stop costs at least 0 GPU-hours."),
    ],
)
def test_nonsense_is_named_and_the_policy_is_tried_as_it_is(now, policy, alice, as_user, asked, said):
    found = page(as_user(alice), policy, **asked)
    assert found.status_code == 200
    text = found.content.decode()
    assert said in text
    assert "Training nodes, dry run: $26 back" in text


def test_what_a_wrong_stop_costs_can_be_tried(now, policy, alice, as_user):
    # Eight GPU-hours at 3.00.
    assert "less $24.00 for the run it hit" in page(as_user(alice), policy, cost="careful").content.decode()
    own = page(as_user(alice), policy, cost="own", gpu_hours="1").content.decode()
    assert "less $3.00 for the run it hit" in own


def test_another_policy_is_a_page_of_its_own(now, policy, alice, as_user):
    other = IdlePolicy.objects.create(team=policy.team, name="Other")
    found = page(as_user(alice), policy, policy=other.pk)
    assert found.headers["Location"] == reverse("idle_dry_run", args=["acme", other.pk])


def test_a_policy_that_covers_nothing_says_so(policy, alice, as_user):
    assert "It covers no machine" in page(as_user(alice), policy).content.decode()


def test_others_see_nothing_of_it(now, policy, charlie, as_user):
    assert page(as_user(charlie), policy).status_code == 404
    own = as_user(charlie).get(reverse("idle_dry_run", args=["rival", policy.pk]))
    assert own.status_code == 404


def test_a_removed_policy_has_no_page(now, policy, alice, as_user):
    IdlePolicy.objects.update(removed_at=MONDAY)
    assert page(as_user(alice), policy).status_code == 404


def test_the_past_of_a_large_fleet_is_read_aside(now, policy, alice, as_user, monkeypatch):
    asked = []
    monkeypatch.setattr(views, "READ_AT_ONCE", 0)
    monkeypatch.setattr(read_history, "delay", lambda *given: asked.append(given))
    client = as_user(alice)
    assert "Reading the past of 2 GPUs" in page(client, policy).content.decode()
    page(client, policy)
    assert asked == [(policy.pk, 30)]
    read_history(*asked[0])
    assert "$26 back" in page(client, policy).content.decode()


def test_as_many_questions_whatever_the_fleet(now, policy, rented, alice, as_user, django_assert_max_num_queries):
    client = as_user(alice)
    page(client, policy)
    with django_assert_max_num_queries(60) as one:
        page(client, policy, days=7)
    for number in range(3):
        record(rented(f"more-{number}"), SIGNS, MONDAY)
    with django_assert_max_num_queries(len(one)):
        page(client, policy, days=7)


def test_the_recommendation_can_be_reckoned_anew_by_operators(now, policy, bob, vera, as_user):
    address = reverse("idle_recommend", args=["acme", policy.pk])
    assert as_user(vera).post(address).status_code == 403
    assert as_user(bob).get(address).status_code == 405
    found = as_user(bob).post(address)
    assert found.headers["Location"] == reverse("idle_dry_run", args=["acme", policy.pk])
    policy.refresh_from_db()
    assert policy.recommended_at == now
    assert policy.recommendation["why"] == "few_days"


def test_times_are_in_the_readers_zone(now, policy, alice, as_user):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    # Stopped at 02:30 in UTC.
    assert "Mon 2 Nov, 10:30" in page(as_user(alice), policy).content.decode()
    assert now - MONDAY < timedelta(days=1)
