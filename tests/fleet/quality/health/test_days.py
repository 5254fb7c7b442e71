"""Each day of each machine is counted from events, alerts, failed starts, acceptance tests and rollups, and today's row grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.alerts.door import raise_event
from fleet.inventory.operations.models import Operation, OperationKind, OperationState
from fleet.quality.health.days import count_health, prune_health
from fleet.quality.models import AcceptanceReport, HealthDay
from tests.fleet.quality.health.conftest import NOW

TODAY = datetime(2026, 11, 17, tzinfo=UTC)
YESTERDAY = TODAY - timedelta(days=1)


def rows() -> dict[str, HealthDay]:
    return {f"{row.instance.name} {row.day:%d}": row for row in HealthDay.objects.select_related("instance")}


def test_a_day_has_its_gpu_hours_its_faults_and_what_was_lost(make_instance, ran, happened):
    machine = make_instance(gpus=2)
    ran(machine, YESTERDAY, hours=20)
    ran(machine, YESTERDAY + timedelta(hours=20), hours=4, lost=True)
    happened(machine, YESTERDAY + timedelta(hours=20), "xid", 79)
    happened(machine, YESTERDAY + timedelta(hours=20, minutes=1), "gpu_lost")
    happened(machine, YESTERDAY + timedelta(hours=3), "xid", 13)
    happened(machine, YESTERDAY + timedelta(hours=3), "agent_started")
    count_health(now=NOW)
    row = rows()["train-01 16"]
    assert (row.provider, row.gpu_hours, row.lost_seconds) == ("manual", 24, 4 * 3600)
    assert row.counts == {"xid": 1, "lost": 1, "program_xid": 1, "faults": 1}
    assert row.score == 60


def test_alerts_failed_starts_and_acceptance_tests_are_counted(make_instance, acme, account):
    machine = make_instance()
    raise_event(team=acme, cause="machine.unreachable", subject=f"instance:{machine.pk}", severity="urgent", now=NOW, instance=machine)  # fmt: skip
    about = {"team": acme, "account": account, "instance": machine}
    Operation.objects.create(**about, kind=OperationKind.START, state=OperationState.FAILED, failed_at=NOW, token="a")
    Operation.objects.create(**about, kind=OperationKind.STOP, state=OperationState.FAILED, failed_at=NOW, token="b")
    AcceptanceReport.objects.create(instance=machine, at=NOW, verdict="not_as_rented")
    AcceptanceReport.objects.create(instance=machine, at=NOW, verdict="pass")
    count_health(now=NOW)
    row = rows()["train-01 17"]
    assert row.counts == {"unreachable": 1, "failed_start": 1, "not_as_rented": 1, "faults": 1}
    assert row.score is None


def test_only_heat_and_power_supply_hold_back(make_instance, ran, throttled):
    machine = make_instance(gpus=1)
    ran(machine, YESTERDAY)
    for minute, bits in ((0, 0x40), (5, 0x4), (10, 0x1), (15, 0x20 | 0x4)):
        throttled(machine, YESTERDAY + timedelta(minutes=minute), bits)
    count_health(now=NOW)
    assert rows()["train-01 16"].throttled_seconds == 600


def test_today_grows_and_late_events_of_yesterday_still_come_in(make_instance, ran, happened):
    machine = make_instance(gpus=1)
    ran(machine, TODAY, hours=3)
    count_health(now=NOW)
    assert rows()["train-01 17"].gpu_hours == 3
    ran(machine, TODAY + timedelta(hours=3), hours=2)
    happened(machine, YESTERDAY, "ecc_uncorrected")
    count_health(now=NOW + timedelta(hours=2))
    assert rows()["train-01 17"].gpu_hours == 5
    assert rows()["train-01 16"].counts == {"ecc": 1, "faults": 1}
    assert count_health(now=NOW + timedelta(hours=2)) == 2


def test_a_machine_that_is_new_here_gets_its_past_also_when_it_is_gone(make_instance, ran):
    ran(make_instance(name="old", gpus=1), TODAY, hours=1)
    count_health(now=NOW)
    late = make_instance(name="late", gpus=1, gone_at=TODAY - timedelta(days=3))
    ran(late, TODAY - timedelta(days=40))
    count_health(now=NOW)
    assert set(rows()) == {"old 17", "late 08"}


def test_instances_of_a_cut_card_are_counted_with_the_card(make_instance, ran):
    machine = make_instance(gpus=1)
    machine.gpus.update(mig_parent_uuid="GPU-parent")
    ran(machine, TODAY, hours=3)
    assert count_health(now=NOW) == 0


def test_the_number_of_queries_does_not_grow_with_machines(make_instance, ran, happened):
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            count_health(now=NOW)
        HealthDay.objects.all().delete()
        return len(found)

    ran(make_instance(name="one", gpus=1), YESTERDAY)
    one = queries()
    for number in range(4):
        machine = make_instance(name=f"more-{number}", gpus=1)
        ran(machine, YESTERDAY)
        happened(machine, YESTERDAY, "xid", 48)
    assert queries() == one


def test_old_days_go(make_instance, ran, settings):
    settings.ROLLUP_1H_RETENTION_DAYS = 31
    ran(make_instance(gpus=1), YESTERDAY)
    count_health(now=NOW)
    assert prune_health(now=NOW + timedelta(days=30)) == 0
    assert prune_health(now=NOW + timedelta(days=40)) == 1
