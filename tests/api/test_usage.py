"""Usage of the fleet over the API: figures, parts, filters, files, and whose GPUs are counted."""

from __future__ import annotations

import csv
import io

import pytest

from fleet.teams.models import Membership, Role, Team

USAGE = "/api/v1/usage/"
pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(acme, as_token):
    client = as_token(acme)
    return lambda **parameters: client.get(USAGE, parameters)


def known(values):
    return [value for value in values if value is not None]


def test_percentiles_power_and_hours(counted, ask):
    answer = ask().json()
    assert (answer["resolution"], answer["percentile_of"], answer["split"]) == ("1h", "1h", None)
    (line,) = answer["series"]
    values = line["values"]
    assert line["part"] is None
    assert len(values["power_watts"]) == len(answer["starts"])
    assert known(values["utilization_p50_percent"]) == known(values["utilization_p95_percent"]) == [90.0, 90.0]
    assert known(values["power_watts"]) == [500.0, 500.0]
    assert sum(known(values["working_gpu_hours"])) == 2.0


def test_split_and_filters(counted, ask):
    assert [line["part"] for line in ask(split="project").json()["series"]] == ["none"]
    assert len(ask(gpu_model="H100 SXM", project="none", tenancy="dedicated_host").json()["series"]) == 1
    for other in ({"gpu_model": "A100"}, {"project": "17"}, {"tenancy": "fraction"}, {"provider": "aws"}):
        assert ask(**other).json()["series"] == []


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"split": "colour"}, "split"),
        ({"project": "Vision"}, "project"),
        ({"tenancy": "cheap"}, "tenancy"),
        ({"parts": "0"}, "parts"),
        ({"max_points": "1"}, "max_points"),
        ({"since": "2020-01-01T00:00:00Z"}, "since"),
        ({"model": "H100"}, "model"),
        ({"format": "xls"}, "format"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(counted, ask, asked, field):
    answer = ask(**asked)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_as_a_file(counted, ask):
    answer = ask(split="gpu_model", format="csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert {row["part"] for row in rows} == {"H100 SXM"}
    assert [row["working_gpu_hours"] for row in rows if row["working_gpu_hours"]] == ["1.0", "1.0"]
    assert ask(format="parquet").content[:4] == b"PAR1"


def test_other_teams_and_the_sandbox_count_nowhere_else(counted, acme, rival, alice, as_token, as_user):
    assert as_token(rival).get(USAGE).json()["series"] == []
    sandbox = Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    Membership.objects.create(team=sandbox, user=alice, role=Role.VIEWER)
    assert len(as_user(alice).get(USAGE).json()["series"]) == 1
    assert as_user(alice).get(USAGE, {"team": "sandbox"}).json()["series"] == []
