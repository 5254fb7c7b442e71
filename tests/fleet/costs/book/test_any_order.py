"""Any log, in any batches, gives the same rows: as a rebuild gives, and as the fold gives without a database."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.costs.book.build import build_ledger, rebuild_ledger
from fleet.costs.book.entries import entry_of, stored_of
from fleet.costs.book.models import LedgerBuild, LedgerChange, LedgerInterval, LedgerMeter, LedgerProgress
from fleet.costs.book.seen import sightings_of
from fleet.costs.ledger.charges import Rules, with_minimums
from fleet.costs.ledger.intervals import MachineLedger
from fleet.inventory.models import Observation
from fleet.providers.base import Billing
from tests.fleet.costs.book.conftest import NOW, at

STATES = st.sampled_from(["running", "starting", "stopped", "odd", "terminated", "unknown"])
PRICES = st.sampled_from([None, Decimal(0), Decimal("0.37"), Decimal(2)])
TIMES = st.one_of(st.none(), st.integers(-60, 600))
RULES = Rules(600, 3600)


@st.composite
def logs(draw):
    """Rows as fields, in the order in which they are written; times may lie anywhere, and even run backwards now and then."""
    rows, clock = [], 0
    for _ in range(draw(st.integers(1, 9))):
        clock = max(0, clock + draw(st.integers(-5, 90)))
        rows.append(
            {
                "seen_at": at(clock),
                "unchanged_until": ago(draw(st.one_of(st.none(), st.integers(0, 20))), clock),
                "listed": draw(st.sampled_from([True, True, True, False])),
                "state": draw(STATES),
                "billing": draw(st.sampled_from(Billing)),
                "market": draw(st.sampled_from(["spot", "on_demand"])),
                "price_per_hour": draw(PRICES),
                "storage_price_per_hour": draw(PRICES),
                "provider_started_at": moment(draw(TIMES)),
                "provider_stopped_at": moment(draw(TIMES)),
            }
        )
    return rows


def moment(minutes):
    return None if minutes is None else at(minutes)


def ago(minutes, clock):
    return None if minutes is None else at(clock - minutes)


def entries(instance):
    rows = LedgerInterval.objects.filter(meter__instance=instance).select_related("meter")
    return sorted((stored_of(row).entry for row in rows), key=lambda one: one.place)


def folded(instance):
    ledger = MachineLedger(str(instance.pk))
    rows = list(Observation.objects.filter(instance=instance).order_by("pk"))
    for seen in sightings_of(rows, machine=str(instance.pk), rate_has_disks=True):
        ledger.see(seen)
    found = [entry_of(one, typed=False) for one in with_minimums(ledger.intervals(), RULES)]
    return sorted(found, key=lambda one: one.place)


def forget():
    for model in (LedgerInterval, LedgerMeter, LedgerProgress, LedgerChange, LedgerBuild, Observation):
        model.objects.all().delete()


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(), st.integers(1, 4))
def test_any_log_in_any_batches_gives_the_same_ledger(machine, monkeypatch, log, size):
    monkeypatch.setattr(Rules, "of", lambda semantics: RULES)
    forget()
    for start in range(0, len(log), size):
        rows = [
            Observation(instance=machine, currency="USD", rule_version=1, **row) for row in log[start : start + size]
        ]
        Observation.objects.bulk_create(rows)
        LedgerBuild.objects.all().delete()
        build_ledger(now=NOW)
    found = entries(machine)
    assert found == folded(machine)
    assert list(rebuild_ledger(instances=[machine.pk])) == []
    check(found)
    LedgerInterval.objects.all().delete()
    list(rebuild_ledger(instances=[machine.pk]))
    assert entries(machine) == found


def check(found):
    """No overlap, no hole, no negative."""
    for kind, resource in {(one.kind, one.resource) for one in found}:
        for before, after in pairwise(one for one in found if (one.kind, one.resource) == (kind, resource)):
            assert before.end is not None
            assert before.end <= after.start
    bases = sorted((one for one in found if one.kind not in {"disk_running", "minimum"}), key=lambda one: one.start)
    assert all(before.end == after.start for before, after in pairwise(bases))
    assert not bases or bases[-1].end is None
    assert all(one.unit_price is None or one.unit_price >= 0 for one in found)
    assert all(one.end is None or one.end > one.start for one in found)
