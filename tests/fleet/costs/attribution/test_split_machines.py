"""Machines that several people share: hours are divided once they are over, by holds or by what was measured."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.attribution.divide import divide_hours
from fleet.costs.attribution.models import MachineSplit, MeasuredHour, ShareHour, ShareProgress, UnixUse, UnixUser
from fleet.costs.attribution.sampling import sample_use
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.attribution.tasks import attribute
from fleet.costs.book.models import LedgerChange
from fleet.inventory.models import GPU, Hold, HoldKind
from fleet.telemetry.models import GpuLatest
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON

GIB = 1 << 30


@pytest.fixture
def shared(acme, machine):
    """shared("holds") is a machine of two GPUs that is split so from noon on."""

    def make(split: str, **more: object):
        instance = machine(gpus=2, **more)
        sync_attribution(team=acme, now=NOON - HOUR)
        MachineSplit.objects.create(instance=instance, split=split)
        sync_attribution(team=acme, now=NOON)
        LedgerChange.objects.all().delete()
        return instance

    return make


def hold(instance, owner, start, end=None, *, kind=HoldKind.PERSON, reason="", expires=None):
    return Hold.objects.create(
        instance=instance, owner=owner, started_at=start, ended_at=end, kind=kind, reason=reason, expires_at=expires
    )


def shows(instance, moment, *lists: list[tuple[str, int]]) -> None:
    """What its agent showed last: of each GPU, users and GiB."""
    for gpu, processes in zip(GPU.objects.filter(instance=instance).order_by("index"), lists, strict=False):
        rows = [{"pid": 7, "user": user, "memory_bytes": size * GIB, "resolved": True} for user, size in processes]
        GpuLatest.objects.update_or_create(
            gpu=gpu, defaults={"sampled_at": moment, "received_at": moment, "processes": rows}
        )


def shares(instance, hour=NOON) -> dict[tuple[str, str], Decimal]:
    rows = ShareHour.objects.filter(instance=instance, hour=hour).select_related("owner")
    return {(row.owner.username if row.owner else "", row.job): row.share for row in rows}


def test_an_hour_is_divided_when_it_is_over(acme, shared, alice, bob):
    instance = shared("holds")
    hold(instance, alice, NOON - HOUR)
    hold(instance, bob, NOON + 30 * MINUTE, NOON + 45 * MINUTE)
    assert divide_hours(team=acme, now=NOON + 59 * MINUTE) == 0
    assert divide_hours(team=acme, now=NOON + HOUR) == 1
    assert shares(instance) == {("alice", ""): Decimal("0.875"), ("bob", ""): Decimal("0.125")}
    assert ShareProgress.objects.get().until == NOON + HOUR
    assert list(LedgerChange.objects.values_list("instance", "from_at")) == [(instance.pk, NOON)]
    assert divide_hours(team=acme, now=NOON + HOUR + MINUTE) == 0


def test_jobs_are_named_by_their_holds(acme, shared, alice):
    instance = shared("holds")
    hold(instance, alice, NOON, kind=HoldKind.JOB, reason="llama-70b")
    hold(instance, None, NOON, kind=HoldKind.HEARTBEAT, reason="cron")
    divide_hours(team=acme, now=NOON + HOUR)
    assert shares(instance) == {("alice", "llama-70b"): Decimal("0.5"), ("", ""): Decimal("0.5")}


def test_a_hold_that_ran_out_holds_no_more(acme, shared, alice):
    instance = shared("holds")
    hold(instance, alice, NOON, expires=NOON + 15 * MINUTE)
    divide_hours(team=acme, now=NOON + 2 * HOUR)
    assert shares(instance) == {("alice", ""): Decimal("0.25")}
    assert shares(instance, NOON + HOUR) == {}
    assert ShareProgress.objects.get().until == NOON + 2 * HOUR


def test_only_the_part_of_the_hour_in_which_the_machine_was_there_counts(acme, machine, alice):
    instance = machine(since=NOON + 20 * MINUTE, gone_at=NOON + 50 * MINUTE)
    MachineSplit.objects.create(instance=instance, split="holds")
    sync_attribution(team=acme, now=NOON + 30 * MINUTE)
    hold(instance, alice, NOON + 20 * MINUTE, NOON + 35 * MINUTE)
    divide_hours(team=acme, now=NOON + HOUR)
    assert shares(instance) == {("alice", ""): Decimal("0.5")}


def test_an_outage_is_caught_up(acme, shared, alice):
    instance = shared("holds")
    hold(instance, alice, NOON)
    assert divide_hours(team=acme, now=NOON + 5 * HOUR + MINUTE) == 5
    assert ShareHour.objects.filter(instance=instance, owner=alice, share=1).count() == 5


def test_a_machine_that_is_whole_again_is_divided_to_its_last_split_hour(acme, shared, alice):
    instance = shared("holds")
    hold(instance, alice, NOON)
    MachineSplit.objects.all().delete()
    sync_attribution(team=acme, now=NOON + 2 * HOUR)
    divide_hours(team=acme, now=NOON + 6 * HOUR)
    assert list(ShareHour.objects.order_by("hour").values_list("hour", flat=True)) == [NOON, NOON + HOUR]
    assert divide_hours(team=acme, now=NOON + 7 * HOUR) == 0


def test_history_is_divided_once(acme, shared, alice, bob):
    instance = shared("holds")
    kept = hold(instance, alice, NOON)
    divide_hours(team=acme, now=NOON + HOUR)
    Hold.objects.filter(pk=kept.pk).update(owner=bob)
    divide_hours(team=acme, now=NOON + 2 * HOUR)
    assert set(shares(instance)) == {("alice", "")}
    assert set(shares(instance, NOON + HOUR)) == {("bob", "")}


def look(acme, instance, count: int, *lists, start=NOON):
    for minute in range(1, count + 1):
        moment = start + minute * MINUTE
        shows(instance, moment - timedelta(seconds=5), *lists)
        sample_use(team=acme, now=moment)


def test_use_is_counted_in_gpu_seconds_by_user(acme, shared):
    instance = shared("measured")
    look(acme, instance, 3, [("ada", 30), ("bob", 10)], [])
    assert dict(UnixUse.objects.values_list("unix_user", "gpu_seconds")) == {"ada": 135.0, "bob": 45.0}
    assert MeasuredHour.objects.get().gpu_seconds == 360.0


def test_the_first_look_of_an_hour_is_about_the_hour_before(acme, shared):
    instance = shared("measured")
    look(acme, instance, 1, [("ada", 1)], [], start=NOON - MINUTE + timedelta(seconds=2))
    assert list(UnixUse.objects.values_list("hour", flat=True)) == [NOON - HOUR]


def test_two_looks_at_once_are_one(acme, shared):
    instance = shared("measured")
    look(acme, instance, 1, [("ada", 1)], [])
    assert sample_use(team=acme, now=NOON + MINUTE + timedelta(seconds=1)) == 0
    assert MeasuredHour.objects.get().gpu_seconds == 120.0


def test_old_readings_say_nothing(acme, shared):
    instance = shared("measured")
    shows(instance, NOON, [("ada", 1)], [("ada", 1)])
    assert sample_use(team=acme, now=NOON + 3 * MINUTE) == 0
    assert not MeasuredHour.objects.exists()


def test_a_card_that_is_cut_counts_by_its_parts(acme, shared):
    instance = shared("measured")
    whole, part = GPU.objects.filter(instance=instance).order_by("index")
    GPU.objects.filter(pk=part.pk).update(mig_parent_uuid=whole.uuid)
    look(acme, instance, 1, [], [("ada", 1)])
    assert MeasuredHour.objects.get().gpu_seconds == 60.0


def test_measured_use_goes_to_the_people_behind_the_users(acme, shared, alice, bob, project):
    instance = shared("measured")
    UnixUser.objects.create(team=acme, name="ada", owner=bob)
    UnixUser.objects.create(team=acme, instance=instance, name="ada", owner=alice, project=project)
    UnixUser.objects.create(team=acme, name="bob", owner=bob)
    look(acme, instance, 4, [("ada", 3), ("bob", 1)], [("stranger", 1)])
    look(acme, instance, 4, [], [], start=NOON + 4 * MINUTE)
    divide_hours(team=acme, now=NOON + HOUR)
    assert shares(instance) == {
        ("alice", ""): Decimal("0.1875"),
        ("bob", ""): Decimal("0.0625"),
        ("", ""): Decimal("0.25"),
    }
    assert ShareHour.objects.get(owner=alice).project == project


def test_an_hour_in_which_nobody_looked_is_nobodys_and_not_idle(acme, shared):
    instance = shared("measured")
    divide_hours(team=acme, now=NOON + HOUR)
    assert shares(instance) == {("", ""): 1}


def test_the_task_looks_follows_and_divides(acme, shared, alice):
    instance = shared("measured")
    UnixUser.objects.create(team=acme, name="ada", owner=alice)
    for minute in (58, 59, 60):
        moment = NOON + minute * MINUTE + timedelta(seconds=3)
        shows(instance, moment, [("ada", 1)], [])
        with time_machine.travel(moment, tick=False):
            attribute()
    assert shares(instance) == {("alice", ""): Decimal("0.5")}


def test_machines_of_other_teams_are_left_alone(rival, shared, alice):
    instance = shared("holds")
    hold(instance, alice, NOON)
    assert divide_hours(team=rival, now=NOON + 2 * HOUR) == 0
    assert sample_use(team=rival, now=NOON) == 0
