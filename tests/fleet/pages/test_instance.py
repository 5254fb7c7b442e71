from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.states import GpuState
from fleet.telemetry.models import GpuLatest, GpuSample, HostSample
from fleet.telemetry.state_codes import STATE_CODES

from .conftest import GIB, HELD, WORKING
from .reading import found


def fill(instance, *, minutes, until_minutes=0, every_seconds=5, **reading):
    """Samples of the machine and of its first GPU over the last minutes."""
    now, gpu = timezone.now(), instance.gpus.order_by("index").first()
    working = STATE_CODES[GpuState.WORKING]
    ages = range(until_minutes * 60, minutes * 60, every_seconds)
    if gpu:
        GpuSample.objects.bulk_create(
            GpuSample(gpu=gpu, sampled_at=now - timedelta(seconds=age), state=working, **(WORKING | reading))
            for age in ages
        )
    HostSample.objects.bulk_create(
        HostSample(
            instance=instance,
            sampled_at=now - timedelta(seconds=age),
            cpu_percent=20,
            disk_read_bytes_per_second=2e9,
            network_rx_bytes_per_second=1e6,
        )
        for age in ages
    )


@pytest.fixture
def page(alice, as_user):
    def get(instance, query=""):
        response = as_user(alice).get(f"/t/acme/instances/{instance.pk}/{query}")
        assert response.status_code == 200
        return response.text

    return get


def charts_of(text):
    return json.loads(found(r'<script id="chart-data" type="application/json">(.*?)</script>', text))


def test_it_says_who_it_is_what_it_does_and_what_it_costs(page, make_machine, alice):
    text = page(make_machine(name="train-01", readings=[WORKING, HELD], price="8.00", region="eu-1", owner=alice))
    assert re.search(r"<h1[^>]*>train-01", text)
    assert "1 of 2 held idle" in text
    assert "/ eu-1" in text
    assert "$8.00<small>/h</small>" in text
    assert "$4.00 of it idle" in text


def test_every_gpu_can_be_chosen(page, make_machine):
    text = page(make_machine(readings=[WORKING, HELD]))
    assert (
        len(re.findall(r'<button type="button" class="gpu big"[^>]+data-gpu="\d+"[^>]+aria-pressed="false"', text)) == 2
    )


def test_memory_that_was_not_read_is_not_shown_as_none(page, make_machine):
    text = page(make_machine(readings=[WORKING | {"memory_used_bytes": None}]))
    tile = found(r'(<button type="button" class="gpu big".*?</button>)', text)
    assert "--m:" not in tile
    assert "memory unknown" in tile


def test_a_hung_driver_leaves_the_ages_of_the_gpus_behind(page, make_machine, as_user, alice):
    """The machine itself reports on; what is shown of its GPUs must not look as fresh."""
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=10)
    GpuLatest.objects.update(sampled_at=timezone.now() - timedelta(seconds=90))
    text = page(instance)
    age = r'.*?<time class="(age[ old]*)"'
    for place in ('data-stat="busy"', 'data-chart-panel="busy"', "<h2>GPUs</h2>"):
        assert found(place + age, text) == "age old"
    for place in ('data-stat="net"', 'data-chart-panel="cpu"'):
        assert found(place + age, text) == "age"
    assert 'class="gpu big" data-s="unknown"' in text
    row = as_user(alice).get("/t/acme/instances/").text
    assert re.search(r'class="age old"[^>]*>1 min</time></td></tr>', row)


def test_charts_carry_the_figures_of_the_span(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=30)
    chart = charts_of(page(instance))["busy"]
    [line] = chart["traces"]
    assert line["gpu"] == instance.gpus.get().pk
    known = [value for value in line["y"] if value is not None]
    assert set(known) == {97.0}
    assert len(known) * chart["step"] == pytest.approx(1800, abs=30)


@pytest.mark.parametrize(
    ("query", "hours"),
    [
        ("", 1),
        ("?span=6h", 6),
        ("?span=24h", 24),
        ("?span=3d", 72),
        ("?span=7d", 168),
        ("?span=30d", 720),
        ("?span=9y", 1),
    ],
)
def test_the_span_is_chosen_in_the_address(page, make_machine, query, hours):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=5)
    chart = charts_of(page(instance, query))["busy"]
    assert len(chart["traces"][0]["y"]) * chart["step"] == pytest.approx(3600 * hours, abs=2 * chart["step"])


@pytest.mark.parametrize(
    ("query", "note"),
    [("?span=6h", "binned raw samples"), ("?span=3d", "rollups of 5 minutes"), ("?span=30d", "rollups of 1 hour")],
)
def test_it_says_what_the_charts_are_made_of(page, make_machine, as_user, alice, query, note):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=5)
    assert f'data-span-note aria-live="polite">{note}</span>' in page(instance, query)
    answer = as_user(alice).get(f"/t/acme/instances/{instance.pk}/series/{query}").json()
    assert answer["note"] == note


def test_over_several_days_times_have_their_date(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=20)
    dated = r'data-chart-panel="memory".*?<th scope="row"><time [^>]+>\d\d-\d\d \d\d:\d\d</time>'
    assert re.search(dated, page(instance, "?span=7d"), re.DOTALL)
    assert not re.search(dated, page(instance, "?span=24h"), re.DOTALL)


def test_a_silence_is_a_gap_and_no_line_of_zeros(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=10)
    fill(instance, minutes=40, until_minutes=25)
    text = page(instance)
    values = charts_of(text)["busy"]["traces"][0]["y"]
    runs = re.findall(r"n+", "".join("n" if value is None else "v" for value in values))
    assert any(len(run) * charts_of(text)["busy"]["step"] == pytest.approx(900, abs=30) for run in runs)
    assert 0 not in values
    assert "no report" in text


def test_each_chart_has_its_figures_as_a_table(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=20)
    text = page(instance)
    table = found(r'data-chart-panel="memory".*?<table>(.*?)</table>', text)
    assert "60.0 GiB" in table
    assert '<span class="unk">' in table  # the hour before the machine began


def test_large_rates_are_read_in_large_units(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=20)
    charts = charts_of(page(instance))
    assert charts["disk_bandwidth"]["unit"] == " GB/s"
    assert charts["network"]["unit"] == " MB/s"


def test_small_rates_are_read_in_small_units(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=20)
    HostSample.objects.update(network_rx_bytes_per_second=800, network_tx_bytes_per_second=2_100)
    chart = charts_of(page(instance))["network"]
    assert (chart["unit"], chart["factor"]) == (" kB/s", 0.001)
    assert {value for value in chart["traces"][1]["y"] if value is not None} == {2.1}


def test_a_reading_without_its_twin_says_which_it_is(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=20)
    HostSample.objects.update(disk_read_iops=None, disk_write_iops=10)
    figure = found(r'data-chart-panel="disk_iops".*?data-figure>(.*?)</span>', page(instance))
    assert figure == "10.0/s write"


def test_a_machine_without_a_gpu_shows_itself(page, make_machine):
    instance = make_machine(readings=[], price=None, host={"cpu_percent": 18.0, "memory_used_bytes": 11 * GIB})
    fill(instance, minutes=10)
    text = page(instance)
    assert "reports, no GPU" in text
    assert "18%<small>" in text
    assert set(charts_of(text)) == {"disk_iops", "disk_bandwidth", "network", "cpu", "host_memory"}


def test_a_machine_that_never_reported_says_what_to_do(page, make_instance):
    instance = make_instance(name="listed", gpu_model="H100 SXM")
    instance.gpu_count = 4
    instance.save()
    text = page(instance)
    assert "No agent reports from this machine" in text
    assert text.count('class="gpu big" data-s="unknown"') == 4


def test_the_series_are_what_the_page_shows(alice, as_user, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=10)
    answer = as_user(alice).get(f"/t/acme/instances/{instance.pk}/series/?span=6h").json()
    assert answer["span"] == "6h"
    assert answer["charts"]["busy"]["traces"][0]["field"] == "utilization_percent"


def test_the_day_is_drawn_as_bands_of_states(page, make_machine):
    instance = make_machine(readings=[WORKING])
    fill(instance, minutes=120, every_seconds=30)
    text = page(instance)
    assert re.search(r'class="bar band-bar" role="img" aria-label="GPU 0: (Unknown [\d:–]+; )?Working', text)


def test_hostile_names_are_text(page, make_machine):
    hostile = "</script><script>alert(1)</script>"
    instance = make_machine(name=hostile, readings=[WORKING])
    instance.gpus.update(name=hostile)
    latest = instance.gpus.get().latest
    latest.processes = [{"pid": 1, "name": hostile, "memory_bytes": 1}]
    latest.save()
    fill(instance, minutes=1)
    text = page(instance)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_another_team_finds_nothing(make_machine, charlie, as_user):
    instance = make_machine(readings=[WORKING])
    client = as_user(charlie)
    for path in ("", "series/", "pulse/"):
        assert client.get(f"/t/acme/instances/{instance.pk}/{path}").status_code == 404
        assert client.get(f"/t/rival/instances/{instance.pk}/{path}").status_code == 404


def test_a_machine_that_left_stays_readable(page, make_machine):
    instance = make_machine(readings=[WORKING], seconds=900, gone_at=timezone.now())
    assert "train-01" in page(instance)
