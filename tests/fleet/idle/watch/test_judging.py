"""What is kept of verdicts from minute to minute, and what judging costs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery import current_app
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.attribution.models import AttributionSpan, SplitMode, UnixUser
from fleet.idle.watch import load
from fleet.idle.watch.highest_postgresql import PostgresReadings
from fleet.idle.watch.judging import judge_all, judge_machine
from fleet.idle.watch.models import IdleVerdictRow
from fleet.idle.watch.tasks import judge_machines_now
from fleet.inventory.models import Instance
from fleet.telemetry.models import GpuLatest, HostLatest
from fleet.telemetry.rollups.columns import FIVE_MINUTES
from fleet.telemetry.rollups.models import RollupProgress
from tests.fleet.idle.watch.machines import NOW, History, ago, always, between, rolled_so_far

SELDOM = timedelta(minutes=1)


def row_of(machine) -> IdleVerdictRow:
    return IdleVerdictRow.objects.get(instance=machine)


def test_an_answer_is_as_old_as_the_first_that_gave_it(resting):
    machine = resting()
    rolled_so_far()
    judge_all(now=NOW - timedelta(seconds=15))
    judge_all(now=NOW)
    row = row_of(machine)
    assert (row.answer, row.judged_at, row.since) == ("idle", NOW, NOW - timedelta(seconds=15))
    assert row.quiet_since == NOW - timedelta(hours=1, seconds=15)
    GpuLatest.objects.filter(gpu__instance=machine).update(utilization_percent=50.0)
    judge_all(now=NOW)
    row = row_of(machine)
    assert (row.answer, row.since, row.quiet_since, row.active_at) == ("active", NOW, None, NOW)


def test_a_worker_that_began_earlier_overwrites_nothing(resting):
    machine = resting()
    rolled_so_far()
    judge_all(now=NOW)
    judge_all(now=NOW - timedelta(minutes=20))
    assert row_of(machine).judged_at == NOW


def test_when_it_was_used_last_is_known_after_its_readings_are_dropped(resting):
    machine = resting()
    rolled_so_far()
    IdleVerdictRow.objects.create(
        instance=machine, answer="active", since=ago(days=9), judged_at=ago(days=9), active_at=ago(days=9), mode="batch", window_minutes=60,
    )  # fmt: skip
    judge_all(now=NOW)
    assert (row_of(machine).answer, row_of(machine).active_at) == ("idle", ago(days=9))


def test_machines_that_are_gone_have_no_verdict(resting):
    machine = resting()
    judge_all(now=NOW)
    Instance.objects.update(gone_at=NOW)
    assert (judge_all(now=NOW), IdleVerdictRow.objects.count()) == (0, 0)
    assert judge_machine(instance=machine, now=NOW).answer == "off"


def test_somebody_who_logs_in_after_a_quiet_night_is_there(resting):
    machine = resting(History(host=always(ssh_sessions=1)))
    rolled_so_far()
    IdleVerdictRow.objects.create(
        instance=machine, answer="idle", since=ago(hours=8), judged_at=ago(minutes=1), active_at=ago(hours=9), ssh_sessions=1,
        mode="interactive", window_minutes=60,
    )  # fmt: skip
    judge_all(now=NOW)
    row = row_of(machine)
    assert (row.answer, "forgotten_session" in [one["code"] for one in row.because]) == ("idle", True)
    HostLatest.objects.update(ssh_sessions=2)
    judge_all(now=NOW)
    row = row_of(machine)
    assert (row.answer, [one["code"] for one in row.because]) == ("active", ["ssh_sessions"])
    assert row.active_at == HostLatest.objects.get().sampled_at


def test_cells_that_take_a_moment_are_use_and_a_kernel_that_waits_is_none(resting):
    used, forgotten = resting(name="used"), resting(name="forgotten")
    for machine, at in ((used, ago(minutes=25)), (forgotten, ago(hours=5))):
        HostLatest.objects.filter(instance=machine).update(detail={"jupyter_last_activity_at": at.timestamp()})
    rolled_so_far()
    judge_all(now=NOW)
    assert (row_of(used).answer, row_of(used).because[0]["code"]) == ("active", "kernel_active")
    assert (row_of(forgotten).answer, row_of(forgotten).active_at) == ("idle", ago(hours=5))


@pytest.mark.parametrize("said", ["yesterday", -(10**30), [], None])
def test_what_no_clock_says_is_no_time(resting, said):
    machine = resting()
    HostLatest.objects.update(detail={"jupyter_last_activity_at": said})
    rolled_so_far()
    judge_all(now=NOW)
    assert row_of(machine).answer == "idle"


def test_of_a_shared_machine_each_part_is_told_and_all_of_it_decides(resting, acme, bob):
    machine = resting(History(gpu={1: always(utilization_percent=80.0)}))
    AttributionSpan.objects.create(
        instance=machine, period=(NOW.replace(minute=0, second=0), None), split=SplitMode.MEASURED, source="machine"
    )
    UnixUser.objects.create(team=acme, name="robert", owner=bob)
    for index, user in enumerate(("robert", "ada")):
        rows = GpuLatest.objects.filter(gpu__instance=machine, gpu__index=index)
        rows.update(processes=[{"pid": 7, "user": user, "resolved": True}])
    rolled_so_far()
    judge_machine(instance=machine, now=NOW)
    row = row_of(machine)
    assert (row.answer, {owner: part["answer"] for owner, part in row.parts.items()}) == (
        "active",
        {"ada": "active", "bob": "idle"},
    )


def test_it_asks_as_often_for_three_machines_as_for_thirty(resting):
    for number in range(30):
        busy = History(gpu={0: always(utilization_percent=90.0)}, step=SELDOM)
        resting(busy if number % 3 == 0 else History(step=SELDOM), name=f"m{number}", gpus=1)
    rolled_so_far()

    def queries(machines: int) -> int:
        Instance.objects.update(gone_at=NOW)
        Instance.objects.filter(pk__in=list(Instance.objects.values_list("pk", flat=True)[:machines])).update(
            gone_at=None
        )
        with CaptureQueriesContext(connection) as asked:
            assert judge_all(now=NOW) == machines
        return len(asked)

    assert queries(3) == queries(30) <= 24
    assert IdleVerdictRow.objects.filter(answer="idle").count() == 20


def test_windows_are_read_only_of_those_that_may_be_idle(resting, monkeypatch):
    asked: list[int] = []

    class Noted(PostgresReadings):
        def gpus(self, wanted, *, now):
            asked.extend(wanted.ids)
            return super().gpus(wanted, now=now)

    monkeypatch.setattr(load, "readings", Noted)
    resting(History(gpu={None: between(3, 0, utilization_percent=90.0)}), name="busy")
    quiet = resting(name="quiet")
    rolled_so_far()
    judge_all(now=NOW)
    assert sorted(asked) == sorted(quiet.gpus.values_list("pk", flat=True))


def test_what_began_and_paused_since_the_last_rollup_is_seen_right_before_a_stop(resting):
    machine = resting(History(host=between(3, 2, cpu_percent=71.0)))
    rolled_so_far()
    judge_all(now=NOW)
    assert row_of(machine).answer == "idle"
    assert judge_machine(instance=machine, now=NOW).codes == ["cpu"]
    assert (row_of(machine).answer, row_of(machine).active_at) == ("active", NOW)


def test_nobody_s_rest_is_believed_while_rollups_are_late(resting):
    machine = resting(History(host=between(30, 25, cpu_percent=71.0)))
    start = FIVE_MINUTES.floor(NOW - timedelta(minutes=40))
    RollupProgress.objects.create(resolution=FIVE_MINUTES.name, rolled_until=start)
    judge_all(now=NOW)
    assert (row_of(machine).answer, row_of(machine).because[0]["code"]) == ("active", "cpu")


@pytest.mark.parametrize("is_there", [True, False])
def test_what_acts_on_verdicts_is_called_at_their_end_where_it_is(resting, monkeypatch, is_there):
    sent: list[tuple[str, object]] = []
    machine = resting()
    monkeypatch.setattr(type(current_app.tasks), "__contains__", lambda tasks, name: is_there)
    monkeypatch.setattr(
        current_app, "send_task", lambda name, **options: sent.append((name, row_of(machine).judged_at))
    )
    assert judge_machines_now() == 1
    assert sent == ([("idle.drive", NOW)] if is_there else [])
