"""The page of what is idle: its sentence, its machines with what decided it, stops, plans, savings, and what it says where there is nothing."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.fleet.pages.conftest import FREE, HELD, STALLED, WORKING

NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)
ADDRESS = "/t/acme/idle/"
LOW = {"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


def page(client, address=ADDRESS):
    response = client.get(address)
    assert response.status_code == 200
    return response


def text_of(response):
    body = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(html.unescape(body).split())


def idle_since(instance, hours, **where):
    """Its GPUs have been at rest for so long, on a machine that came up before."""
    instance.state_since = timezone.now() - timedelta(days=2)
    instance.save(update_fields=["state_since"])
    for gpu in instance.gpus.filter(**where):
        gpu.latest.idle_since = timezone.now() - timedelta(hours=hours)
        gpu.latest.save(update_fields=["idle_since"])


def test_the_sentence_is_of_the_same_reading_as_the_strip(alice, as_user, make_machine):
    make_machine(name="busy", readings=[WORKING] * 4, price="8.00")
    make_machine(name="half", readings=[WORKING, FREE], price="4.00")
    make_machine(name="hung", readings=[STALLED], price="1.50")
    response = page(as_user(alice))
    said = text_of(response)
    assert "Rent is running at $13.50 an hour, and $3.50 of it buys nothing." in said
    assert "2 of 7 GPUs on 2 of 3 machines." in said
    assert re.search(r"Idle money .{0,40}\$2 \.00", said), said
    assert "Stalled $1.50" in said
    assert "Free $2.00" in said


def test_the_dearest_comes_first_and_says_what_decided_it(alice, as_user, make_machine, judged):
    cheap = make_machine(name="cheap", readings=[HELD], price="1.00")
    dear = make_machine(name="dear", readings=[HELD, HELD], price="9.00", owner=alice)
    judged(dear, because=[LOW])
    idle_since(dear, 3)
    response = page(as_user(alice))
    rows = response.context["rows"]
    assert [row.view.instance.name for row in rows] == ["dear", "cheap"]
    said = text_of(response)
    assert "Held idle for 3 h" in said
    assert "idle since 08:42" in said
    assert rows[0].reasons
    assert rows[0].reasons[0] in said
    assert "not judged yet" in said
    assert cheap.name in said


def test_what_was_lost_is_the_price_of_the_gpus_that_rest_since_they_do(alice, as_user, make_machine):
    machine = make_machine(readings=[HELD, WORKING], price="8.00")
    idle_since(machine, 3, index=0)
    row = page(as_user(alice)).context["rows"][0]
    assert row.waster.lost == 12
    assert row.waster.lost_is_all


def test_nothing_is_lost_from_before_the_machine_came_up(alice, as_user, make_machine):
    machine = make_machine(readings=[HELD], price="8.00")
    idle_since(machine, 30)
    machine.state_since = timezone.now() - timedelta(hours=1)
    machine.save()
    assert page(as_user(alice)).context["rows"][0].waster.lost == 8


def test_of_a_stalled_gpu_it_is_unknown_since_when(alice, as_user, make_machine):
    both = make_machine(name="both", readings=[STALLED, HELD], price="8.00")
    make_machine(name="hung", readings=[STALLED], price="2.00")
    idle_since(both, 1, index=1)
    response = page(as_user(alice))
    first, second = response.context["rows"]
    assert (first.waster.lost, first.waster.lost_is_all) == (4, False)
    assert second.waster.lost is None
    assert "At least $4.00 lost since each began" in text_of(response)


def test_a_machine_without_a_price_is_last_and_not_free_of_charge(alice, as_user, make_machine):
    make_machine(name="unpriced", readings=[HELD], price=None)
    make_machine(name="priced", readings=[HELD], price="0.10")
    rows = page(as_user(alice)).context["rows"]
    assert [row.view.instance.name for row in rows] == ["priced", "unpriced"]
    assert rows[1].waster.price is None
    assert rows[1].waster.lost is None


def test_what_cannot_be_judged_stands_apart_with_its_reason(alice, as_user, make_machine, judged):
    silent = make_machine(name="silent", readings=[HELD], seconds=4000, price="0.44")
    judged(silent, "unknown", because=[{"code": "stale", "subject": "GPU 0", "value": None, "limit": None}])
    fresh = make_machine(name="fresh", readings=[WORKING])
    busy = make_machine(name="busy", readings=[WORKING])
    judged(busy, "active")
    response = page(as_user(alice))
    listed = [one.view.instance.name for one in response.context["unjudged"].shown]
    assert listed == [fresh.name, silent.name]
    said = text_of(response)
    assert "silent : not judged:" in said
    assert "fresh : not judged yet" in said
    assert response.context["rows"] == []


def test_an_operator_is_offered_the_mildest_end_and_a_viewer_none(bob, vera, as_user, make_machine):
    machine = make_machine(readings=[HELD])
    may = page(as_user(bob)).content.decode()
    assert f"/t/acme/instances/{machine.pk}/hold/" in may
    shown = page(as_user(vera)).content.decode()
    assert f"/t/acme/instances/{machine.pk}/hold/" not in shown
    assert "<form" not in shown.partition("<main")[2]


def test_a_stop_under_way_counts_down_and_can_be_answered(bob, vera, as_user, make_machine, stop_of):
    machine = make_machine(readings=[HELD], price="8.00")
    stop = stop_of(machine, "grace", deadline=NOW + timedelta(minutes=12), delivered_at=NOW)
    response = page(as_user(bob))
    body = response.content.decode()
    assert 'data-left="720"' in body
    assert "12:00" in text_of(response)
    for verb in ("snooze", "veto", "now"):
        assert f'action="/t/acme/idle/stops/{stop.pk}/{verb}/"' in body
    assert f"/idle/stops/{stop.pk}/" not in page(as_user(vera)).content.decode()


def test_what_the_provider_was_asked_is_not_offered_back(bob, as_user, make_machine, stop_of):
    stop = stop_of(make_machine(readings=[HELD]), "verifying", ordered_at=NOW)
    body = page(as_user(bob)).content.decode()
    assert f'id="stop-{stop.pk}"' in body
    assert f"/idle/stops/{stop.pk}/" not in body


def test_a_failed_stop_stands_first_and_says_what_it_burns(bob, as_user, make_machine, stop_of):
    stop_of(make_machine(name="waits", readings=[HELD]), "grace", deadline=NOW + timedelta(minutes=1))
    failed = make_machine(name="lied", readings=[HELD], price="8.00")
    stop_of(failed, "failed", ordered_at=NOW - timedelta(hours=2), orders=3, events=("stopping", "failed"))
    response = page(as_user(bob))
    assert [one.stop.instance.name for one in response.context["stops"]] == ["lied", "waits"]
    said = text_of(response)
    assert "$16.00 since it was ordered" in said
    assert "$16.00 burnt after the order" in said
    assert "still running and billed after 3 orders" in said


def test_the_line_of_a_stop_has_six_steps(bob, as_user, make_machine, stop_of):
    stages = ("warned", "grace", "prestop")
    stop_of(make_machine(readings=[HELD]), "prestop", events=stages, hook="running")
    proof = page(as_user(bob)).context["proofs"][0]
    assert [step.at for step in proof.steps] == ["done", "done", "now", "todo", "todo", "todo"]
    assert proof.steps[0].moment == NOW - timedelta(minutes=2)
    assert proof.steps[2].detail == "its hook runs"


def test_what_is_planned_and_what_is_left_alone_is_listed(bob, as_user, make_machine, stop_of, plan_of):
    planned, left = make_machine(name="planned", readings=[HELD]), make_machine(name="left", readings=[HELD])
    plan_of(planned, hours=2)
    stop_of(left, "cancelled", why="snoozed", rests_until=NOW + timedelta(hours=1), ended_at=NOW)
    response = page(as_user(bob))
    assert 'data-left="7200"' in response.content.decode()
    said = text_of(response)
    assert "the nights" in said
    assert "2 h 00" in said
    assert "Left alone until 09:42" in said
    assert "Called off lately" in said


def test_only_who_has_a_word_on_a_plan_is_offered_one(alice, bob, vera, as_user, make_machine, plan_of):
    by_hand = plan_of(make_machine(name="hand", readings=[HELD]), source="person:1")
    of_budget = plan_of(make_machine(name="budget", readings=[HELD]), source="budget:1")
    offered = {
        user.username: [
            plan.source
            for plan in (by_hand, of_budget)
            if f"/t/acme/idle/planned/{plan.pk}/cancel/" in page(as_user(user)).content.decode()
        ]
        for user in (alice, bob, vera)
    }
    assert offered == {"alice": ["person:1", "budget:1"], "bob": ["person:1"], "vera": []}


def test_savings_of_the_month_stand_there_with_what_they_are_compared_with(
    bob, as_user, make_machine, saving_of, stop_of
):
    machine = make_machine(readings=[HELD])
    saving_of(machine, hours=3, stop=stop_of(machine, "stopped"))
    said = text_of(page(as_user(bob)))
    assert "$24.00 saved in November" in said
    assert "off for 3 h that would have cost $8.00 an hour" in said


def test_policies_stand_in_their_order(bob, as_user, make_machine, policy, stop_of):
    machine = make_machine(readings=[HELD])
    stop_of(machine, "stopped", policy=policy)
    stop_of(machine, "cancelled", policy=policy)
    said = text_of(page(as_user(bob)))
    assert "Nights on Machines idle for 1 h are stopped 30 min after a warning." in said
    assert re.search(r"a warning\.( Dry run)? 1 1 called off —", said), said


def test_without_machines_or_readings_it_says_so(alice, as_user, make_instance):
    said = text_of(page(as_user(alice)))
    assert "Nothing is rented that could be idle." in said
    make_instance(gpus=1, price_per_hour="2.00")
    cache.clear()
    said = text_of(page(as_user(alice)))
    assert "Rent is running at $2.00 an hour; what of it buys nothing, nobody has read yet." in said
    assert "what is unknown is never stopped" in said


def test_with_all_at_work_it_says_since_when(alice, as_user, make_machine, monkeypatch):
    make_machine(readings=[WORKING])
    monkeypatch.setattr("fleet.pages.idle.view.quiet_since", lambda team, now: NOW - timedelta(hours=2))
    said = text_of(page(as_user(alice)))
    assert "none of it is seen to buy nothing" in said
    assert "Since 06:42 no GPU has bought nothing." in said


def test_names_from_machines_are_escaped(alice, as_user, make_machine, stop_of, plan_of):
    machine = make_machine(name="<b>x</b>", readings=[HELD])
    stop_of(machine, "grace", deadline=NOW, policy_name="<i>p</i>")
    plan_of(machine, reason="<u>r</u>")
    body = page(as_user(alice)).content.decode()
    for raw in ("<b>x</b>", "<i>p</i>", "<u>r</u>"):
        assert raw not in body
        assert html.escape(raw) in body


def test_the_pulse_brings_the_moving_parts(alice, as_user, make_machine):
    make_machine(readings=[HELD])
    body = page(as_user(alice), f"{ADDRESS}pulse/").content.decode()
    for part in ("figures", "lead", "wasters", "stops", "proofs", "saved"):
        assert re.search(rf'id="{part}"[^>]*hx-swap-oob="true"', body), part


def test_another_team_sees_nothing_of_it(charlie, as_user, make_machine, stop_of, saving_of, plan_of):
    machine = make_machine(readings=[HELD])
    stop = stop_of(machine, "grace", deadline=NOW)
    saving_of(machine)
    plan_of(machine)
    client = as_user(charlie)
    assert client.get(ADDRESS).status_code == 404
    assert machine.name not in page(client, "/t/rival/idle/").content.decode()
    assert client.post(f"/t/rival/idle/stops/{stop.pk}/now/").status_code == 404


def queries(client, address):
    with CaptureQueriesContext(connection) as captured:
        page(client, address)
    return len(captured)


@pytest.mark.parametrize("address", [ADDRESS, f"{ADDRESS}pulse/"])
def test_many_machines_cost_as_many_queries_as_five(
    address, bob, as_user, make_machine, judged, stop_of, plan_of, saving_of, policy
):
    client, counts = as_user(bob), []

    def add(numbers):
        for number in numbers:
            machine = make_machine(name=f"m{number}", readings=[HELD], owner=bob)
            judged(machine, because=[LOW], policy=policy)
            if number % 3 == 0:
                stop = stop_of(machine, "grace", deadline=NOW, policy=policy, events=("warned",))
                saving_of(machine, stop=stop)
            plan_of(machine)

    for numbers in (range(5), range(5, 60)):
        add(numbers)
        cache.clear()
        queries(client, address)
        cache.clear()
        counts.append(queries(client, address))
    assert counts[0] == counts[1]
