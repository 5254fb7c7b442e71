"""The figures of a machine's charts as files."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from pyarrow import parquet

from fleet.states import GpuState
from fleet.telemetry.models import GpuSample, HostSample
from fleet.telemetry.state_codes import STATE_CODES

from .conftest import HELD, WORKING


@pytest.fixture
def machine(make_machine):
    """Two GPUs, the second of which said nothing for the older half of ten minutes."""
    found = make_machine(name="train 01", readings=[WORKING, HELD])
    first, second = found.gpus.order_by("index")
    now = timezone.now()
    working, held = STATE_CODES[GpuState.WORKING], STATE_CODES[GpuState.HELD_IDLE]
    for step in range(120):
        at = now - timedelta(seconds=5 * step + 5)
        GpuSample.objects.create(gpu=first, sampled_at=at, state=working, power_watts=300.5, utilization_percent=97.0)
        if step < 60:
            GpuSample.objects.create(gpu=second, sampled_at=at, state=held, power_watts=70.0, utilization_percent=0.0)
        HostSample.objects.create(instance=found, sampled_at=at, disk_read_iops=5.0)
    return found


def series(client, machine, **query):
    return client.get(f"/t/acme/instances/{machine.pk}/series/", query)


def test_csv_has_a_column_a_gpu_with_its_unit(machine, alice, as_user):
    answer = series(as_user(alice), machine, format="csv", chart="power", span="15m")
    assert answer.status_code == 200
    assert "train-01-power-" in answer["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(rows[0]) == ["starts_at", "gpu0_power_watts", "gpu1_power_watts"]
    assert {row["gpu0_power_watts"] for row in rows} == {"", "300.5"}
    known = [row for row in rows if row["gpu0_power_watts"]]
    assert {row["gpu1_power_watts"] for row in known} == {"", "70.0"}
    assert datetime.fromisoformat(rows[0]["starts_at"]).tzinfo == UTC


def test_parquet_has_the_same_rows(machine, alice, as_user, time_machine):
    time_machine.move_to(timezone.now(), tick=False)
    client = as_user(alice)
    query = {"chart": "disk_iops", "span": "1h"}
    cells = list(csv.DictReader(io.StringIO(series(client, machine, format="csv", **query).text)))
    found = parquet.read_table(io.BytesIO(series(client, machine, format="parquet", **query).content))
    rows = found.to_pylist()
    assert [row["starts_at"] for row in rows] == [datetime.fromisoformat(row["starts_at"]) for row in cells]
    read = [float(row["disk_read_iops"]) if row["disk_read_iops"] else None for row in cells]
    assert [row["disk_read_iops"] for row in rows] == read
    assert {5.0, None} == set(read)
    assert found.column("disk_write_iops").null_count == len(rows)
    assert found.schema.metadata[b"resolution"] == b"raw"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"format": "xlsx", "chart": "power"}, "format: give one of csv, parquet"),
        ({"format": "csv", "chart": "fans"}, "chart: give one of those that this machine has: busy, memory, power"),
        ({"format": "csv"}, "chart: give one of"),
    ],
)
def test_what_is_wrong_is_named(machine, alice, as_user, query, words):
    answer = series(as_user(alice), machine, **query)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_every_chart_offers_its_files(machine, alice, as_user):
    text = as_user(alice).get(f"/t/acme/instances/{machine.pk}/?span=6h").text
    for name in ("busy", "power", "disk_iops"):
        for kind in ("csv", "parquet"):
            assert f'/series/?span=6h&amp;chart={name}&amp;format={kind}" data-file download' in text


def test_the_bands_are_a_file_of_states(machine, alice, as_user):
    answer = series(as_user(alice), machine, format="csv", chart="states", span="15m")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(rows[0]) == ["starts_at", "gpu0_state", "gpu1_state"]
    assert {row["gpu0_state"] for row in rows} >= {"working"}
    assert "held" in {row["gpu1_state"] for row in rows}
    assert len(rows) > 100, "the bands' day, whatever the charts' span"
    text = as_user(alice).get(f"/t/acme/instances/{machine.pk}/").text
    assert "/series/?span=24h&amp;chart=states&amp;format=parquet" in text


def test_the_overviews_states_are_a_file(machine, alice, as_user):
    client = as_user(alice)
    assert "/t/acme/states/?&amp;chart=states&amp;format=csv" in client.get("/t/acme/states/").text
    answer = client.get("/t/acme/states/", {"format": "csv", "chart": "states"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(rows[0])[:3] == ["starts_at", "working_gpus", "held_gpus"]
    # Where the last bucket begins depends on the clock.
    assert rows[0]["working_gpus"] == "0"
    assert "1" in {row["working_gpus"] for row in rows[-3:]}
    parquet_file = client.get("/t/acme/states/", {"format": "parquet", "chart": "states"}).content
    assert parquet.read_table(io.BytesIO(parquet_file)).num_rows == len(rows)


def test_another_team_gets_none(machine, charlie, as_user):
    assert series(as_user(charlie), machine, format="csv", chart="power").status_code == 404
