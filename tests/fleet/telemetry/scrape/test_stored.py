"""What a scrape leaves behind: the same rows, latest values and events as an agent's batch."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from fleet.inventory.models import GPU
from fleet.meters import meters
from fleet.pages.machine import MachineView
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import GpuLatest, GpuSample, HostLatest, HostSample, MachineEvent, ScrapeTarget
from fleet.telemetry.scrape.plan import claim_due
from fleet.telemetry.scrape.run import scrape_claim
from tests.fakes.exporter import answer
from tests.fleet.telemetry.conftest import enrolled
from tests.fleet.telemetry.scrape.pages import CARD, dcgm, xid

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = dcgm(DEV_GPU_UTIL=97, DEV_POWER_USAGE=600, DEV_FB_USED=100, DEV_FB_FREE=900, DEV_FB_RESERVED=24)


def scrape() -> list[str]:
    """Reads all targets as if they were due; the code of each outcome."""
    ScrapeTarget.objects.update(next_scrape_at=timezone.now() - timedelta(seconds=1))
    return [outcome.code for claim in claim_due(now=timezone.now()) for outcome in scrape_claim(claim)]


def test_a_gpu_and_a_host_land_where_an_agents_do(make_instance, target_of):
    machine = make_instance()
    target_of(machine, "/gpus", PAGE)
    target_of(machine, "/host", "node_load1 3\n")
    assert scrape() == ["", ""]
    gpu = GPU.objects.get(instance=machine)
    assert (gpu.uuid, gpu.name, gpu.memory_total_bytes) == (CARD, "NVIDIA H100 80GB HBM3", 1 << 30)
    stored = GpuSample.objects.get()
    assert (stored.utilization_percent, stored.interval_seconds) == (97, 30)
    assert HostSample.objects.get().load1 == 3
    assert (GpuLatest.objects.get().power_watts, HostLatest.objects.get().load1) == (600, 3)
    machine.refresh_from_db()
    assert (machine.gpu_model, machine.gpu_count) == ("H100 SXM", 0)
    (now,) = machines_now([machine], now=timezone.now())
    assert now.state == "working"
    for target in ScrapeTarget.objects.all():
        assert (target.error, target.failures, target.claim) == ("", 0, None)
        assert timezone.now() < target.next_scrape_at < timezone.now() + timedelta(seconds=40)


def test_it_is_counted_for_the_operator(make_instance, target_of, exporter, monkeypatch):
    monkeypatch.setattr(meters, "_counts", {})
    target_of(make_instance(name="a"), "/gpus", PAGE)
    target_of(make_instance(name="b"), "/none", "no metrics here\n")
    assert sorted(scrape()) == ["", "not_metrics"]
    counted = {(name, *(value for _, value in labels)): by for (name, labels), by in meters._counts.items()}
    assert counted == {
        ("samples", "gpu", "exporter"): 1, ("scrapes", "ok"): 1, ("scrapes", "not_metrics"): 1,
    }  # fmt: skip


def test_rates_need_two_scrapes_and_counters_are_kept_between_them(make_instance, target_of, exporter):
    page = "node_pressure_io_waiting_seconds_total {}\nnode_load1 1\n"
    target = target_of(make_instance(), "/host", page.format(0))
    scrape()
    assert HostLatest.objects.get().pressure_io_percent is None
    ScrapeTarget.objects.update(memory={**ScrapeTarget.objects.get().memory, "at": timezone.now().timestamp() - 20})
    exporter.pages["/host"] = answer(page.format(5))
    scrape()
    assert HostLatest.objects.get().pressure_io_percent == pytest.approx(25, rel=0.1)
    assert ScrapeTarget.objects.get(pk=target.pk).memory["counters"]["pressure_io_percent"] == [5]


def test_an_xid_is_one_row_when_it_changes(make_instance, target_of, exporter):
    target_of(make_instance(), "/gpus", xid(0))
    scrape()
    exporter.pages["/gpus"] = answer(xid(79))
    scrape()
    scrape()
    event = MachineEvent.objects.get()
    assert (event.kind, event.code, event.gpu.uuid if event.gpu else None) == ("xid", 79, CARD)


def test_a_gpu_that_is_no_longer_there_is_marked_and_keeps_its_history(make_instance, target_of, exporter):
    target_of(make_instance(), "/gpus", PAGE + dcgm(uuid="GPU-other", DEV_GPU_UTIL=1))
    scrape()
    exporter.pages["/gpus"] = answer(PAGE)
    scrape()
    assert GPU.objects.get(removed_at=None).uuid == CARD
    assert GPU.objects.count() == 2


class TestWhenSeveralFeedOneMachine:
    def test_the_agent_wins_and_the_exporter_stands_by(self, make_instance, target_of, exporter):
        machine = make_instance(gpus=1)
        agent, _secret = enrolled(machine)
        type(agent).objects.update(batch_at=timezone.now())
        target_of(machine, "/gpus", PAGE)
        assert scrape() == [""]
        assert exporter.asked == []
        assert ScrapeTarget.objects.get().yields_to == "agent"
        assert not GpuSample.objects.exists()

    @pytest.mark.parametrize("fields", [{"batch_at": None}, {"paused": True}, {"revoked_at": timezone.now()}])
    def test_an_agent_that_does_not_report_does_not(self, make_instance, target_of, fields):
        machine = make_instance(gpus=1)
        agent, _secret = enrolled(machine)
        type(agent).objects.update(**{"batch_at": timezone.now(), **fields})
        target_of(machine, "/gpus", PAGE)
        scrape()
        assert GpuSample.objects.exists()

    def test_of_two_exporters_that_give_the_same_the_first_is_stored(self, make_instance, target_of):
        machine = make_instance()
        first = target_of(machine, "/a", PAGE)
        second = target_of(machine, "/b", PAGE + "node_load1 1\n")
        scrape()
        before = GpuSample.objects.count()
        scrape()
        assert GpuSample.objects.count() == before + 1
        assert HostSample.objects.count() == 2
        assert [ScrapeTarget.objects.get(pk=target.pk).yields_to for target in (first, second)] == ["", "exporter"]

    def test_the_second_takes_over_when_the_first_is_silent(self, make_instance, target_of, exporter):
        machine = make_instance()
        first = target_of(machine, "/a", PAGE)
        target_of(machine, "/b", PAGE)
        scrape()
        exporter.pages.pop("/a")
        ScrapeTarget.objects.filter(pk=first.pk).update(last_ok_at=timezone.now() - timedelta(minutes=5))
        before = GpuSample.objects.count()
        assert sorted(scrape()) == ["", "status"]
        assert GpuSample.objects.count() == before + 1


def test_readings_of_a_slow_target_are_not_silent_in_between(make_instance, target_of):
    machine = make_instance()
    target_of(machine, "/gpus", PAGE, interval_seconds=60)
    scrape()
    GpuLatest.objects.update(sampled_at=F("sampled_at") - timedelta(seconds=50))
    (now,) = machines_now([machine], now=timezone.now())
    assert now.state == "working"
    view = MachineView(now, timezone.now())
    assert (view.stale_seconds, view.period_seconds, view.reports) == (75, 60, True)
    GpuLatest.objects.update(sampled_at=F("sampled_at") - timedelta(seconds=50))
    (now,) = machines_now([machine], now=timezone.now())
    assert now.state == "unknown"
