"""What history recommends is kept with the policy: by the daily task and on demand, for the policy as it was looked at, and in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.idle.dryrun.recommend import RECOMMENDER, keep_recommendation, recommend
from fleet.idle.dryrun.tasks import recommend_windows
from fleet.idle.dryrun.words import advice_text, interval_text
from fleet.idle.policies.covering import judged_by
from fleet.idle.policies.models import IdlePolicy
from fleet.teams.models import AuditEntry
from tests.fleet.idle.dryrun.recording import hours, record

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)
# Three hours of work with pauses of 20 min and of 25 min, then nobody until the next day.
WORKDAY = "w" * 24 + "...." + "w" * 6 + "....." + "w" * 9 + hours(20)
KEPT = {
    "minutes": 95, "best": 95, "why": "", "days": 30, "learned_days": 21, "unseen_days": 9, "stops": 4, "wrong": 0, "back": 41.2,
    "net": 41.2, "idle": 57.0, "interval": [22.4, 58.1], "machines_net": None, "cost": {}, "own": {},
}  # fmt: skip


@pytest.fixture
def fortnight(rented, policy, time_machine):
    machine = rented()
    policy.restart_minutes = 60
    policy.save()
    for number in range(10):
        record(machine, WORKDAY[:288], MONDAY + number * DAY)
    time_machine.move_to(MONDAY + 10 * DAY, tick=False)
    return MONDAY + 10 * DAY


def test_it_waits_out_the_pauses_and_no_longer(fortnight, policy):
    kept = recommend(policy=policy, now=fortnight)
    assert kept.is_new
    policy.refresh_from_db()
    assert policy.recommended_minutes == kept.values["minutes"]
    assert 5 <= policy.recommended_minutes <= 60
    assert (kept.values["learned_days"], kept.values["unseen_days"], kept.values["wrong"]) == (7, 3, 0)
    assert policy.recommended_at == fortnight


def test_the_daily_task_does_so_for_every_policy_that_stands(fortnight, policy, acme):
    off = IdlePolicy.objects.create(team=acme, name="Off", enabled=False)
    gone = IdlePolicy.objects.create(team=acme, name="Gone", removed_at=MONDAY)
    assert recommend_windows() == 2
    reckoned = set(IdlePolicy.objects.filter(recommended_at__isnull=False).values_list("pk", flat=True))
    assert reckoned == {policy.pk, off.pk}
    assert gone.pk not in reckoned


def test_a_policy_that_was_changed_meanwhile_keeps_nothing(policy):
    IdlePolicy.objects.update(revision=2)
    assert not keep_recommendation(actor=RECOMMENDER, policy=policy, values=KEPT, now=MONDAY)
    policy.refresh_from_db()
    assert (policy.recommended_minutes, policy.recommended_at) == (None, None)


def test_only_another_window_leaves_a_line_in_the_audit_log(policy):
    for number, minutes in enumerate([95, 95, None, None]):
        keep_recommendation(
            actor=RECOMMENDER, policy=policy, values=KEPT | {"minutes": minutes}, now=MONDAY + number * DAY
        )
    entries = AuditEntry.objects.filter(action="idle_policy.recommend").order_by("pk")
    assert [entry.new for entry in entries] == [{"recommended_minutes": 95}, {"recommended_minutes": None}]


def test_a_machine_with_a_window_of_its_own_is_judged_by_it(policy, rented):
    """Only while the policy's window comes from history, and history recommends to stop."""
    machine, other = rented(), rented("other")
    own = {str(machine.pk): {"minutes": 45, "net": 9.5, "group_net": 7.0}}
    keep_recommendation(actor=RECOMMENDER, policy=policy, values=KEPT | {"own": own}, now=MONDAY)
    assert windows(machine, other) == [60, 60]
    IdlePolicy.objects.update(window_from="recommended")
    assert windows(machine, other) == [45, 95]
    IdlePolicy.objects.update(recommended_minutes=None)
    assert windows(machine, other) == [60, 60]


def windows(*machines):
    found = judged_by(machines)
    return [found[machine.pk].window // timedelta(minutes=1) for machine in machines]


def test_it_is_said_in_words():
    assert advice_text(KEPT) == (
        "After 95 quiet minutes. On the 9 days that it did not learn from it would have given back 41 of 57 GPU-hours and hit no run."
    )
    assert "22 to 58 GPU-hours" in interval_text(KEPT)
    assert "and hit 2 runs." in advice_text(KEPT | {"wrong": 2})
    assert "would have stopped nothing." in advice_text(KEPT | {"stops": 0})


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("few_days", "Not yet: 21 days of readings are too few to learn from, it takes 7."),
        ("no_gain", "Better not to stop: on 21 days"),
        ("lost_days", "Better not to stop: 1 h 35 min looked best on 21 days, and would have lost 12 GPU-hours"),
        ("lost_machines", "Better not to stop: what half of the machines taught would have lost 3.0 GPU-hours"),
    ],
)
def test_not_to_stop_is_an_advice_with_its_reason(why, said):
    kept = KEPT | {"minutes": None, "why": why, "net": -12.0, "machines_net": -3.0}
    assert advice_text(kept).startswith(said)
    assert interval_text(kept) == ""
