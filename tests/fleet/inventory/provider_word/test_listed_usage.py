"""Use that a list tells is kept as the provider's word: what cannot be true is dropped, and a week is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.inventory.poll import poll_account
from fleet.inventory.provider_word.figures import MOST_GPUS
from fleet.inventory.provider_word.keeping import prune_usage
from fleet.inventory.provider_word.models import ProviderUsage
from tests.fleet.inventory.conftest import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def tell(lab, provider, listed):
    """tell(usage, after=minutes) polls a list in which that is told of its machine."""

    def poll(*told, minutes: float = 0) -> None:
        provider.machines = [listed(usage.ref.external_id, usage=usage) for usage in told]
        lab.refresh_from_db()
        assert poll_account(account=lab, now=NOON + timedelta(minutes=minutes)).error is None

    return poll


def test_the_first_list_that_names_a_machine_keeps_its_use(tell, measured):
    tell(measured(gpu_utilization_percent=(97.0, 0.0), cpu_percent=3.5, network_sent_bytes_per_s=1e6))
    row = ProviderUsage.objects.get()
    assert (row.instance.external_id, row.source, row.at) == ("i-1", "provider", NOON)
    assert (row.gpu_utilization_percent, row.cpu_percent, row.network_sent_bytes_per_s) == ([97.0, 0.0], 3.5, 1e6)
    assert (row.gpu_memory_percent, row.memory_percent, row.disk_read_bytes_per_s) == ([], None, None)


def test_five_minutes_have_one_row_with_the_last_figures(tell, measured):
    for minute, percent in ((0, 10.0), (1, 20.0), (4.9, 30.0), (5, 40.0)):
        tell(measured(cpu_percent=percent), minutes=minute)
    rows = ProviderUsage.objects.order_by("slot").values_list("slot", "cpu_percent")
    assert list(rows) == [(NOON, 30.0), (NOON + timedelta(minutes=5), 40.0)]


def test_the_providers_own_time_counts(tell, measured):
    tell(measured(cpu_percent=1.0, at=NOON - timedelta(hours=2, minutes=1)))
    row = ProviderUsage.objects.get()
    assert (row.at, row.slot) == (NOON - timedelta(minutes=121), NOON - timedelta(minutes=125))


def test_decimals_of_an_answer_are_figures(tell, measured):
    tell(measured(cpu_percent=Decimal("3.5")))
    assert ProviderUsage.objects.get().cpu_percent == 3.5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 100.5, 10**400, True, "9", Decimal("NaN")])
def test_what_no_machine_can_have_measured_is_unknown(tell, measured, value):
    tell(measured(cpu_percent=value, memory_percent=2.0, gpu_utilization_percent=(value, 5.0)))
    row = ProviderUsage.objects.get()
    assert (row.cpu_percent, row.memory_percent, row.gpu_utilization_percent) == (None, 2.0, [None, 5.0])


@pytest.mark.parametrize(
    "figures",
    [
        {"cpu_percent": float("nan"), "network_sent_bytes_per_s": -1.0, "disk_read_bytes_per_s": 1e300},
        {"gpu_utilization_percent": (1.0,) * (MOST_GPUS + 1)},
        {"cpu_percent": 1.0, "at": NOON + timedelta(days=400)},
        {"cpu_percent": 1.0, "at": NOON - timedelta(days=8)},
        {"cpu_percent": 1.0, "at": datetime(2026, 11, 30, 12)},  # noqa: DTZ001 - a provider's time without a zone
        {},
    ],
)
def test_nothing_is_kept_where_nothing_can_be_true(tell, measured, figures):
    tell(measured(**figures))
    assert not ProviderUsage.objects.exists()


def test_a_list_that_lost_its_claim_keeps_nothing(lab, provider, listed, measured):
    provider.machines = [listed("i-1", usage=measured(cpu_percent=1.0))]
    type(lab).objects.filter(pk=lab.pk).update(poll_started_at=NOON)
    assert poll_account(account=lab, now=NOON).changes is None
    assert not ProviderUsage.objects.exists()


def test_hundreds_of_machines_take_no_more_queries(tell, measured):
    counts = []
    for minute, size in ((0, 3), (10, 3), (20, 300), (30, 300)):
        with CaptureQueriesContext(connection) as queries:
            tell(*(measured(f"i-{number}", cpu_percent=1.0) for number in range(size)), minutes=minute)
        counts.append(len(queries))
    assert counts[1] == counts[3]
    assert ProviderUsage.objects.count() == 606


def test_a_week_is_kept(tell, measured):
    tell(measured(cpu_percent=1.0))
    tell(measured(cpu_percent=2.0), minutes=60)
    assert prune_usage(now=NOON + timedelta(days=7, minutes=30)) == 1
    assert ProviderUsage.objects.get().cpu_percent == 2.0
