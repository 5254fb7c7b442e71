"""From the observation log to rows of the ledger: edges, machines that lists leave out, minimums, and what is told to whoever sums days."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.book.build import LOCK, build_ledger
from fleet.costs.book.models import LedgerBuild, LedgerChange, LedgerInterval, LedgerMeter, LedgerProgress
from fleet.costs.book.tasks import build
from fleet.inventory.models import ProviderAccount
from tests.fleet.costs.book.conftest import NOW, at, gone, log, minutes, missed, spans, stopped


def test_a_run_and_a_stop_become_intervals(machine):
    log(machine, 0, started=-10)
    stopped(machine, 31, until=30, stopped=30, storage_price_per_hour=Decimal("0.1"))
    built = build_ledger(now=NOW)
    assert spans(machine) == [("compute", -10, 30), ("disk_stopped", 30, None)]
    compute, disk = LedgerInterval.objects.order_by("period")
    assert (compute.unit, compute.unit_price, compute.price_source) == ("hour", Decimal(2), "listing")
    assert (disk.unit, disk.unit_price, disk.start_source) == ("hour", Decimal("0.1"), "provider")
    assert (built.machines, built.is_complete) == (1, True)


def test_without_the_providers_time_it_is_the_middle_of_two_readings(machine):
    log(machine, 0)
    stopped(machine, 32, until=30)
    build_ledger(now=NOW)
    assert spans(machine, "compute") == [("compute", 0, 31)]
    row = LedgerInterval.objects.get(meter__kind="compute")
    assert (row.start_source, row.end_half_width_seconds) == ("first_seen", 60)


def test_a_price_and_a_market_that_change_split(machine):
    log(machine, 0, market="spot")
    log(machine, 10, market="spot", price="3", until=10)
    log(machine, 20, market="on_demand", price="3", until=20)
    build_ledger(now=NOW)
    rows = LedgerInterval.objects.order_by("period")
    assert [(minutes(row.period.lower), row.unit_price, row.market, row.run) for row in rows] == [
        (0, Decimal(2), "spot", 1),
        (10, Decimal(3), "spot", 1),
        (20, Decimal(3), "on_demand", 1),
    ]


def test_nothing_seen_for_hours_is_no_stop(machine):
    log(machine, 0)
    log(machine, 600, price="3", until=599)
    build_ledger(now=NOW)
    assert spans(machine) == [("compute", 0, 599.5), ("compute", 599.5, None)]


class TestLeftOut:
    def test_what_one_list_leaves_out_runs_on(self, machine):
        log(machine, 0)
        missed(machine, 10, until=9)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, None)]
        log(machine, 11, until=9)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, None)]

    def test_who_is_gone_in_the_end_ended_before_the_first_list_that_left_it_out(self, machine):
        log(machine, 0)
        missed(machine, 12, until=10)
        build_ledger(now=NOW)
        gone(machine, 20, until=10)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, 11), ("nothing", 11, None)]

    def test_who_comes_back_was_never_gone(self, machine):
        log(machine, 0)
        missed(machine, 12, until=10)
        gone(machine, 20, until=10)
        build_ledger(now=NOW)
        log(machine, 50, until=10)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, None)]
        changes = LedgerChange.objects.order_by("pk").values_list("from_at", flat=True)
        assert minutes(list(changes)[-1]) == 11

    def test_who_comes_back_with_a_later_start_had_stopped(self, machine):
        log(machine, 0)
        gone(machine, 20, until=10)
        log(machine, 50, until=10, started=40)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, 25), ("unknown", 25, 40), ("compute", 40, None)]

    def test_a_list_that_nobody_believes_stops_nothing(self, machine):
        log(machine, 0)
        missed(machine, 10, until=9)
        missed(machine, 20, state="unknown", billing="unknown", until=9)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, None)]

    def test_of_a_disconnected_account_nobody_knows_anything(self, machine):
        log(machine, 0)
        missed(machine, 20, state="unknown", billing="unknown")
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, 20), ("unknown", 20, None)]

    def test_an_account_that_is_connected_again_charges_nothing_twice(self, machine, make_instance, acme):
        log(machine, 0, started=-60)
        missed(machine, 20, state="unknown", billing="unknown")
        ProviderAccount.objects.filter(pk=machine.account_id).update(disconnected_at=at(20))
        again = ProviderAccount.objects.create(team=acme, kind="runpod", name="RunPod again")
        same = make_instance(account=again, first_seen_at=at(30))
        other = make_instance(name="other", account=again, first_seen_at=at(30))
        for one in (same, other):
            log(one, 30, started=-60)
        build_ledger(now=NOW)
        assert spans(machine, "compute") == [("compute", -60, 20)]
        assert (spans(same), spans(other)) == ([("compute", 20, None)], [("compute", -60, None)])


class TestLaunches:
    def test_a_launch_begins_when_the_provider_says(self, machine):
        """It was named in an answer, and shown a minute later, started just before the answer."""
        log(machine, 0, state="unknown", billing="unknown", price=None, rule_version=0, raw_state="")
        build_ledger(now=NOW)
        log(machine, 1, started=-0.1, until=1)
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", -0.1, None)]

    def test_a_launch_that_failed_costs_what_the_provider_says(self, machine):
        log(machine, 0, state="unknown", billing="unknown", price=None, rule_version=0, raw_state="")
        log(machine, 1, state="error", billing="none", price="80", until=1)
        build_ledger(now=NOW)
        assert spans(machine) == [("unknown", 0, 1), ("nothing", 1, None)]
        assert not LedgerInterval.objects.exclude(unit="")


class TestProviders:
    def test_disks_are_charged_beside_the_rate_where_it_leaves_them_out(self, make_instance, acme, machine):
        aws = ProviderAccount.objects.create(team=acme, kind="aws", name="AWS")
        other = make_instance(name="b", account=aws)
        for one in (machine, other):
            log(one, 0, storage_price_per_hour=Decimal("0.1"))
        build_ledger(now=NOW)
        assert spans(machine) == [("compute", 0, None)]
        assert sorted(spans(other)) == [("compute", 0, None), ("disk_running", 0, None)]

    @pytest.mark.parametrize("at_once", [True, False])
    def test_a_minimum_is_of_the_whole_run_and_its_own_meter(self, make_instance, acme, at_once):
        """Vultr charges by whole hours: 20 + 15 minutes at two prices, then 30 minutes of another run within the same hour."""
        vultr = ProviderAccount.objects.create(team=acme, kind="vultr", name="Vultr")
        machine = make_instance(name="b", account=vultr)
        story = [
            lambda: log(machine, 0, started=0),
            lambda: log(machine, 20, until=20, started=0, price="4"),
            lambda: stopped(machine, 35, until=35, price="4"),
            lambda: log(machine, 40, until=40, started=40, price="4"),
            lambda: stopped(machine, 70, until=70, price="4"),
        ]
        for step in story:
            step()
            if not at_once:
                build_ledger(now=NOW)
        build_ledger(now=NOW)
        assert spans(machine, "minimum") == [("minimum", 35, 60), ("minimum", 70, 100)]
        meters = LedgerMeter.objects.filter(kind="minimum").order_by("pk")
        assert [meter.resource for meter in meters] == ["run 1", "run 2"]
        assert set(LedgerInterval.objects.filter(meter__in=meters).values_list("unit_price", flat=True)) == {Decimal(4)}

    def test_typed_machines_count_with_every_edit(self, make_instance):
        machine = make_instance()
        log(machine, 0, started=0, price="1.5")
        log(machine, 60, until=60, started=0, price="1.75")
        build_ledger(now=NOW)
        rows = LedgerInterval.objects.order_by("period")
        assert [(minutes(row.period.lower), row.unit_price) for row in rows] == [
            (0, Decimal("1.5")),
            (60, Decimal("1.75")),
        ]
        assert {(row.price_source, row.start_source) for row in rows} == {("typed", "typed")}

    def test_a_price_that_nobody_told_is_no_zero(self, machine):
        log(machine, 0, price=None)
        build_ledger(now=NOW)
        row = LedgerInterval.objects.get()
        assert (row.unit_price, row.price_source, row.meter.kind) == (None, "unknown", "compute")


class TestRuns:
    def test_a_second_run_finds_nothing_to_do(self, machine):
        log(machine, 0)
        build_ledger(now=NOW)
        before = list(LedgerInterval.objects.values())
        assert build_ledger(now=NOW).machines == 0
        assert list(LedgerInterval.objects.values()) == before
        assert LedgerChange.objects.count() == 1

    def test_a_row_that_changes_nothing_tells_nobody(self, machine):
        log(machine, 0)
        build_ledger(now=NOW)
        log(machine, 5, until=5, raw_state="RUNNING")
        assert build_ledger(now=NOW).rows == 0
        assert LedgerChange.objects.count() == 1
        assert LedgerProgress.objects.get().until == at(5)

    def test_who_sums_days_is_told_from_when_on(self, machine):
        log(machine, 0)
        build_ledger(now=NOW)
        LedgerChange.objects.all().delete()
        stopped(machine, 90, until=90)
        build_ledger(now=NOW)
        change = LedgerChange.objects.get()
        assert (change.instance_id, minutes(change.from_at)) == (machine.pk, 90)

    def test_a_run_that_breaks_off_goes_on_where_it_was(self, machine, make_instance, cloud):
        other = make_instance(name="b", account=cloud)
        log(machine, 0)
        log(other, 0)
        assert not build_ledger(now=NOW, budget_seconds=0, machines_at_once=1).is_complete
        assert (len(spans(machine)), len(spans(other))) == (1, 0)
        assert not LedgerBuild.objects.exists()
        build_ledger(now=NOW)
        assert (len(spans(machine)), len(spans(other))) == (1, 1)

    def test_a_batch_that_fails_leaves_nothing_half(self, machine, monkeypatch):
        log(machine, 0)
        monkeypatch.setattr("fleet.costs.book.write.keep_progress", broken)
        with pytest.raises(RuntimeError):
            build_ledger(now=NOW)
        assert not LedgerInterval.objects.exists()

    def test_what_was_written_late_is_found(self, machine, make_instance, cloud):
        log(machine, 0)
        build_ledger(now=NOW)
        late = make_instance(name="late", account=cloud)
        log(late, -120)
        build_ledger(now=NOW + timedelta(minutes=1))
        assert spans(late) == []
        build_ledger(now=NOW + timedelta(days=1))
        assert spans(late) == [("compute", -120, None)]

    def test_queries_do_not_grow_with_machines(self, make_instance, cloud):
        build_ledger(now=NOW)
        counts = []
        for size in (2, 12):
            for number in range(size):
                one = make_instance(name=f"{size}-{number}", account=cloud)
                log(one, 0)
                stopped(one, 5, until=5)
            with CaptureQueriesContext(connection) as queries:
                build_ledger(now=NOW)
            counts.append(len(queries))
        assert counts[0] == counts[1]

    def test_the_task_builds(self, machine):
        log(machine, 0)
        assert build() == 1


def broken(*arguments: object) -> None:
    raise RuntimeError


@pytest.mark.django_db(transaction=True)
def test_only_one_builds_at_a_time(machine):
    log(machine, 0)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            assert not build_ledger(now=NOW).is_complete
            assert spans(machine) == []
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert build_ledger(now=NOW).is_complete
