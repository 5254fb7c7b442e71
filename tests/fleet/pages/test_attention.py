"""What is said of machines that need a person, and what is left in peace."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.pages.attention import attention
from fleet.pages.fleet import load_fleet
from fleet.providers.base import InstanceState
from fleet.telemetry.models import GpuLatest

from .conftest import FREE, HELD, STALLED, WORKING


@pytest.fixture
def lines(acme):
    return lambda: attention(load_fleet(team=acme, now=timezone.now()).machines)


def test_a_healthy_and_a_free_machine_are_left_in_peace(lines, make_machine):
    make_machine(name="busy", readings=[WORKING])
    make_machine(name="empty", readings=[FREE])
    assert lines() == []


def test_a_lost_gpu_comes_before_everything(lines, make_machine):
    make_machine(name="stuck", readings=[STALLED], price="90")
    make_machine(name="broken", readings=[WORKING, WORKING], price="8", lost=[1])
    first, second = lines()
    assert (first.title, first.mark, first.at_stake_text) == ("broken lost a GPU", "urgent", "$4.00")
    assert "GPU 1" in first.text
    assert second.title == "stuck makes no progress"


def test_a_hung_driver_is_not_a_silent_machine(lines, make_machine):
    make_machine(readings=[WORKING], agent={"nvml_state": "hung", "nvml_detail": "no answer for 90 s"})
    [line] = lines()
    assert line.title == "train-01: its GPU driver hangs"
    assert line.text.startswith("no answer for 90 s. ")


def test_a_silent_machine_that_is_billed(lines, make_machine):
    make_machine(readings=[WORKING], seconds=840, price="27.45")
    [line] = lines()
    assert line.title == "train-01 went quiet"
    assert line.text.startswith("No report for 14 min; ")
    assert line.at_stake_text == "$27.45"


def test_a_silent_machine_without_gpus(lines, make_machine):
    make_machine(name="web-01", readings=[], seconds=840, price="0.40")
    make_machine(name="web-02", readings=[])
    [line] = lines()
    assert (line.title, line.mark, line.at_stake_text) == ("web-01 went quiet", "unknown", "$0.40")
    assert line.text.startswith("No report for 14 min; ")


def test_a_machine_that_is_off_is_left_in_peace(lines, make_machine):
    make_machine(readings=[], seconds=840, state=InstanceState.STOPPED, agent={"nvml_state": "hung"})
    assert lines() == []


def test_a_machine_that_never_had_an_agent_is_not_quiet(lines, make_instance):
    make_instance(gpus=2)
    assert lines() == []


def test_waiting_for_data_names_the_reading(lines, make_machine):
    waiting = {"utilization_percent": 31.0, "memory_used_bytes": 60 << 30}
    make_machine(readings=[waiting] * 8, host={"cpu_iowait_percent": 64.0})
    [line] = lines()
    assert line.text == "8 of 8 GPUs at 31%; the machine waits for its disk 64.0% of the time."


def test_held_memory_is_priced_since_the_last_work(lines, make_machine):
    make_machine(readings=[HELD, HELD], price="14.32")
    GpuLatest.objects.update(idle_since=timezone.now() - timedelta(hours=6, minutes=12))
    [line] = lines()
    assert "108 GiB of GPU memory is held." in line.text
    assert "No work for 6 h 12 min." in line.text
    assert "About $88.78 so far" in line.text


def test_without_a_price_there_is_no_sum(lines, make_machine):
    make_machine(readings=[HELD], price=None)
    GpuLatest.objects.update(idle_since=timezone.now() - timedelta(hours=6))
    [line] = lines()
    assert line.at_stake_text == ""
    assert "so far" not in line.text
