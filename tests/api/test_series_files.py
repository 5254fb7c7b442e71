"""Series of the API as CSV and Parquet."""

from __future__ import annotations

import csv
import io
from datetime import datetime

import pytest
from pyarrow import parquet

from tests.api.test_samples import GPUS, HOSTS, ask, measured

__all__ = ["ask", "measured"]


def span(measured, **more):
    return {"instance": measured.instance.pk, "since": "2026-11-30T08:00:00Z", **more}


def test_a_row_a_bucket_and_gpu(measured, ask):
    asked = span(measured, fields="utilization_percent,power_watts")
    told = ask(GPUS, **asked).json()
    rows = list(csv.DictReader(io.StringIO(ask(GPUS, **asked, format="csv").text)))
    assert list(rows[0]) == ["starts_at", "instance", "gpu", "utilization_percent", "power_watts"]
    assert len(rows) == len(told["starts"]) * len(told["series"])
    for number, one in enumerate(told["series"]):
        mine = rows[number * len(told["starts"]) :][: len(told["starts"])]
        assert {row["gpu"] for row in mine} == {str(one["gpu"])}
        assert [row["starts_at"] for row in mine] == told["starts"]
        read = [float(row["utilization_percent"]) if row["utilization_percent"] else None for row in mine]
        assert read == one["values"]["utilization_percent"]
    assert "" in {row["power_watts"] for row in rows}


def test_parquet_is_the_same_and_says_what_was_read(measured, ask):
    asked = span(measured, fields="cpu_percent", statistic="p95")
    told = ask(HOSTS, **asked).json()
    answer = ask(HOSTS, **asked, format="parquet")
    assert answer["Content-Type"] == "application/vnd.apache.parquet"
    found = parquet.read_table(io.BytesIO(answer.content))
    assert found.to_pydict()["cpu_percent"] == told["series"][0]["values"]["cpu_percent"]
    assert found.to_pydict()["starts_at"] == [datetime.fromisoformat(start) for start in told["starts"]]
    assert {name: found.schema.metadata[name] for name in (b"statistic", b"percentile_of", b"resolution")} == {
        b"statistic": b"p95",
        b"percentile_of": b"samples",
        b"resolution": b"raw",
    }


def test_the_accept_header_asks_too(measured, acme, as_token):
    answer = as_token(acme).get(HOSTS, span(measured), headers={"Accept": "text/csv"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.text.startswith("starts_at,instance,cpu_percent")


@pytest.mark.parametrize(
    ("wrong", "field"), [({"format": "xlsx"}, "format"), ({"format": "csv", "fields": "fans"}, "fields")]
)
def test_a_refusal_is_json_whatever_was_asked_for(measured, ask, wrong, field):
    answer = ask(GPUS, **span(measured, **wrong))
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert answer.json()["field"] == field
    assert answer.json()["error"] == "invalid"


def test_no_gpu_is_a_file_without_rows(measured, ask):
    measured.instance.gpus.all().delete()
    assert ask(GPUS, **span(measured), format="csv").text == "starts_at\r\n"
