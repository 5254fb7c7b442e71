"""The page of the fleet's usage: charts, splits, filters, files, and what it says before there is anything."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.providers.registry import adapters
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.fleet_models import FleetRollupHour, FleetRollupProgress, RollupGroup

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
HOURS = timedelta(hours=1)
PAGE = "/t/acme/usage/"


@pytest.fixture(autouse=True)
def now(db):
    with time_machine.travel(NOON, tick=False):
        ensure_partitions(now=NOON, since=NOON - timedelta(days=40))
        yield NOON


@pytest.fixture
def usage_of(acme, account):
    """usage_of("H100", 80, hours=3) is a GPU of a model that worked at so many percent for so long before noon, at 500 W."""

    def make(model="H100", percent=80, *, hours=3, held=0.0, watts=500.0, team=acme, **fields) -> RollupGroup:
        group = RollupGroup.objects.create(
            team=team, account=account, gpu_model=model, **{"tenancy": "fraction", **fields}
        )
        for number in range(hours):
            FleetRollupHour.objects.create(
                group=group,
                bucket_at=NOON - (number + 1) * HOURS,
                utilization_gpus=[int(bin_ == percent) for bin_ in range(101)],
                power_watts=watts,
                power_gpus=1,
                **{f"{name}_seconds": 0.0 for name in ("free", "starved", "stalled", "unknown", "stopped")},
                held_seconds=3600 * held,
                working_seconds=3600 * (1 - held),
            )
        for name in ("1h", "5min"):
            FleetRollupProgress.objects.get_or_create(resolution=name, defaults={"rolled_until": NOON})
        return group

    return make


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def figures_of(response) -> Any:
    found = re.search(r'<script id="usage-data" type="application/json">(.+?)</script>', response.content.decode())
    assert found
    return json.loads(found[1])


def test_it_says_what_the_charts_show(alice, as_user, usage_of):
    usage_of("H100", 90)
    usage_of("A100", 40, held=0.5)
    page = as_user(alice).get(PAGE)
    text = text_of(page)
    assert "Half of the GPU time ran at 40% or less" in text
    assert "75% of the GPU-hours worked, 25% were idle" in text
    assert "across GPUs, each counted once an hour with its mean" in text
    assert "1.00 kW on average" in text
    figures = figures_of(page)
    assert list(figures) == ["utilization", "hours", "power"]
    assert [value for value in figures["utilization"]["traces"][1]["y"] if value is not None] == [90, 90, 90]
    assert {trace["state"]: max(filter(None, trace["y"])) for trace in figures["hours"]["traces"]} == {
        "working": 1.5,
        "held": 0.5,
    }


def test_a_split_has_a_line_a_part_and_power_that_adds_up(alice, as_user, usage_of):
    usage_of("H100", 90, hours=5)
    usage_of("A100", 40, watts=300.0)
    page = as_user(alice).get(PAGE, {"split": "gpu_model", "span": "30d"})
    figures = figures_of(page)
    assert list(figures) == ["utilization_p50", "utilization_p95", "hours", "power", "part-1", "part-2"]
    assert [trace["name"] for trace in figures["power"]["traces"]] == ["H100", "A100"]
    # 800 W for three hours and 500 W for two.
    assert "0.68 kW on average" in text_of(page)
    assert "GPU-hours by GPU model" in text_of(page)
    # Small charts share the legend of the large one.
    assert page.content.decode().count("<h3>") == 2


def test_parts_are_called_what_people_call_them(alice, as_user, usage_of, project):
    usage_of("H100", project=project)
    usage_of("A100")
    client = as_user(alice)
    known = {
        "project": ("Vision", "no project"),
        "tenancy": ("part of a GPU",),
        "provider": (adapters()["manual"].label,),
    }
    for split, words in known.items():
        assert all(word in text_of(client.get(PAGE, {"split": split})) for word in words), split


def test_filters_narrow_and_nonsense_is_left_out(alice, as_user, usage_of, project):
    usage_of("H100", 90, project=project)
    usage_of("A100", 40)
    client = as_user(alice)
    assert "ran at 90% or less" in text_of(client.get(PAGE, {"gpu_model": "H100", "project": project.pk}))
    assert "No GPU fits" in text_of(client.get(PAGE, {"gpu_model": "B200"}))
    assert "ran at 40% or less" in text_of(client.get(PAGE, {"span": "9y", "split": "colour"}))


def test_before_anything_is_counted_the_page_says_what_comes_next(alice, as_user):
    assert "Figures begin some minutes after the first machine reports" in text_of(as_user(alice).get(PAGE))


def test_names_are_text(alice, as_user, usage_of):
    usage_of("<img src=x onerror=alert(1)>")
    page = as_user(alice).get(PAGE, {"split": "gpu_model"}).content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_a_chart_as_a_file(alice, as_user, usage_of):
    usage_of("H100", 90)
    client = as_user(alice)
    answer = client.get(PAGE, {"chart": "hours", "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["working_gpu_hours"] for row in rows if row["working_gpu_hours"]] == ["1.0"] * 3
    assert "usage-hours-7d-2031-03-14T1200Z.csv" in answer.headers["Content-Disposition"]
    parquet = client.get(PAGE, {"chart": "utilization", "format": "parquet"})
    assert parquet.content[:4] == b"PAR1"
    refused = client.get(PAGE, {"chart": "speed", "format": "csv"})
    assert refused.status_code == 400
    assert "utilization, hours, power" in refused.json()["detail"]
    assert client.get(PAGE, {"chart": "hours", "format": "xls"}).status_code == 400


def test_another_team_s_gpus_are_not_counted(alice, charlie, as_user, usage_of, rival):
    usage_of("H100", 90)
    usage_of("A100", 10, team=rival)
    assert "ran at 90% or less" in text_of(as_user(alice).get(PAGE))
    assert as_user(charlie).get(PAGE).status_code == 404
    assert "A100" not in as_user(alice).get(PAGE).content.decode()


def test_the_queries_do_not_grow_with_the_parts(alice, as_user, usage_of):
    client = as_user(alice)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert client.get(PAGE, {"split": "gpu_model"}).status_code == 200
        return len(found)

    usage_of("first")
    queries()
    one = queries()
    for number in range(12):
        usage_of(f"m{number}")
    assert queries() == one
