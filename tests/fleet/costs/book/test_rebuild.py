"""Rebuilding: the same from all observations, what differs is told and put right, and what no observation shows any more stays."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from fleet.costs.book.build import build_ledger, rebuild_ledger
from fleet.costs.book.models import LedgerChange, LedgerInterval, LedgerMeter
from fleet.inventory.models import Observation, ProviderAccount
from fleet.inventory.observe import KEPT, prune_observations
from tests.fleet.costs.book.conftest import NOW, log, minutes, spans, stopped


def rebuild(*options):
    out = StringIO()
    call_command("ledger_rebuild", *options, stdout=out)
    return out.getvalue()


def rows():
    return sorted(LedgerInterval.objects.values_list())


@pytest.fixture
def built(machine):
    log(machine, 0, started=0)
    stopped(machine, 60, until=60, storage_price_per_hour=Decimal("0.1"))
    build_ledger(now=NOW)
    LedgerChange.objects.all().delete()
    return machine


def test_what_is_right_is_left_alone(built):
    before = rows()
    assert rebuild("--check") == "1 machines, 0 differences.\n"
    rebuild()
    assert rows() == before
    assert not LedgerChange.objects.exists()


def test_what_was_changed_by_hand_is_told_and_put_right(built):
    LedgerInterval.objects.filter(meter__kind="compute").update(unit_price=Decimal(3))
    with pytest.raises(CommandError, match="not what the observation log gives"):
        rebuild("--check")
    assert LedgerInterval.objects.get(meter__kind="compute").unit_price == 3
    assert "has compute 2026-11-10T12:00:00Z – 2026-11-10T13:00:00Z 3.0000000000 USD/hour instead of" in rebuild()
    assert LedgerInterval.objects.get(meter__kind="compute").unit_price == 2
    assert minutes(LedgerChange.objects.get().from_at) == 0


def test_a_check_names_what_is_missing_and_what_nothing_shows(built, capsys):
    LedgerInterval.objects.filter(meter__kind="disk_stopped").delete()
    meter = LedgerMeter.objects.create(
        team=built.team, account=built.account, instance=built, kind="unknown", resource=""
    )
    one = LedgerInterval.objects.get()
    LedgerInterval.objects.filter(pk=one.pk).update(meter=meter)
    out = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("ledger_rebuild", "--check", stdout=out)
    assert failed.value.returncode == 1
    assert "lacks disk_stopped 2026-11-10T13:00:00Z – now 0.100000 USD/hour" in out.getvalue()
    assert "has unknown" in out.getvalue()
    assert "which nothing shows" in out.getvalue()


def test_what_people_typed_is_no_part_of_it(built):
    meter = LedgerMeter.objects.create(
        team=built.team, account=built.account, instance=built, kind="address", resource="charge 1"
    )
    one = LedgerInterval.objects.get(meter__kind="compute")
    one.pk, one.meter = None, meter
    one.save()
    rebuild()
    assert LedgerInterval.objects.filter(meter=meter).exists()


def test_only_the_machines_that_are_named(built, make_instance, rival):
    other = make_instance(name="b", account=built.account)
    log(other, 0)
    LedgerInterval.objects.all().delete()
    rebuild("--machine", str(other.pk))
    assert (spans(built), spans(other)) == ([], [("compute", 0, None)])
    rebuild("--team", "acme")
    assert len(spans(built)) == 2
    with pytest.raises(CommandError, match="no such machine"):
        rebuild("--team", "rival")


class TestPruned:
    """Rows older than 25 months are dropped, but for the last one. What was made from them cannot be made again, and stays."""

    @pytest.fixture
    def vultr(self, acme, make_instance):
        account = ProviderAccount.objects.create(team=acme, kind="vultr", name="Vultr")
        return make_instance(name="old", account=account)

    def test_what_lies_before_the_first_kept_row_stays(self, vultr):
        log(vultr, 0, started=0)
        stopped(vultr, 30, until=30, storage_price_per_hour=Decimal("0.1"))
        log(vultr, 100, until=100, started=100)
        log(vultr, 120, until=118, started=100, price="3")
        log(vultr, 140, until=140, started=100, price="4")
        build_ledger(now=NOW)
        prune_observations(now=NOW + KEPT + timedelta(minutes=100))
        stopped(vultr, 150, until=150)
        build_ledger(now=NOW)
        before = rows()
        assert Observation.objects.count() == 3
        assert list(rebuild_ledger(instances=[vultr.pk])) == []
        assert rows() == before
        assert spans(vultr, "compute", "minimum") == [
            ("compute", 0, 30),
            ("minimum", 30, 60),
            ("compute", 100, 119),
            ("compute", 119, 140),
            ("compute", 140, 150),
            ("minimum", 150, 160),
        ]

    def test_what_lies_after_it_is_put_right(self, vultr):
        log(vultr, 0, started=0)
        log(vultr, 120, until=118, started=0, price="3")
        log(vultr, 140, until=140, started=0, price="4")
        build_ledger(now=NOW)
        prune_observations(now=NOW + KEPT + timedelta(minutes=95))
        LedgerInterval.objects.exclude(unit_price=3).update(unit_price=9)
        list(rebuild_ledger(instances=[vultr.pk]))
        assert list(LedgerInterval.objects.order_by("period").values_list("unit_price", flat=True)) == [9, 3, 4]
