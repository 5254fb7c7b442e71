from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.teams.models import Team
from fleet.telemetry.models import GpuSample, HostSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.roll import roll_up

GPUS, HOSTS = "/api/v1/samples/gpus/", "/api/v1/samples/hosts/"
START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


@pytest.fixture
def measured(fleet, time_machine):
    """Ten minutes of readings every 5 s, with the third minute missing; it is 08:10."""
    time_machine.move_to("2026-11-30T08:10:00Z", tick=False)
    ensure_partitions(now=START)
    moments = [START + timedelta(seconds=5 * step) for step in range(120) if not 24 <= step < 36]
    GpuSample.objects.bulk_create(
        GpuSample(gpu=fleet.gpus[0], sampled_at=at, utilization_percent=50.0 + (at.second % 10), power_watts=300.0)
        for at in moments
    )
    HostSample.objects.bulk_create(
        HostSample(instance=fleet.instance, sampled_at=at, cpu_percent=20.0) for at in moments
    )
    return fleet


@pytest.fixture
def ask(acme, as_token):
    client = as_token(acme)
    return lambda address, **parameters: client.get(address, parameters)


def test_a_gpu_has_means_per_bucket_and_gaps(measured, ask):
    gpu = measured.gpus[0].pk
    answer = ask(GPUS, gpu=gpu, fields="utilization_percent", since="2026-11-30T08:00:00Z").json()
    assert answer["bucket_seconds"] == 10
    assert (answer["since"], answer["starts"][0]) == ("2026-11-30T08:00:00Z", "2026-11-30T08:00:00Z")
    values = answer["series"][0]["values"]["utilization_percent"]
    assert len(values) == len(answer["starts"]) == 60
    # 50 and 55 every ten seconds.
    assert values[:3] == [52.5, 52.5, 52.5]
    assert values[12:18] == [None] * 6
    assert values[18] == 52.5


def test_a_machine_stands_for_all_its_gpus(measured, ask):
    answer = ask(GPUS, instance=measured.instance.pk).json()
    assert [row["gpu"] for row in answer["series"]] == [gpu.pk for gpu in measured.gpus]
    assert set(answer["series"][0]["values"]) == {
        "utilization_percent",
        "memory_used_bytes",
        "power_watts",
        "temperature_celsius",
    }
    assert set(answer["series"][1]["values"]["power_watts"]) == {None}


def test_a_host_has_a_series(measured, ask):
    answer = ask(HOSTS, instance=measured.instance.pk, fields="cpu_percent,cpu_iowait_percent").json()
    values = answer["series"][0]["values"]
    assert {20.0, None} == set(values["cpu_percent"])
    assert set(values["cpu_iowait_percent"]) == {None}


@pytest.mark.parametrize("max_points", [2, 10, 600])
def test_a_series_has_no_more_points_than_asked_for(measured, ask, max_points):
    answer = ask(GPUS, gpu=measured.gpus[0].pk, max_points=max_points).json()
    assert 1 <= len(answer["starts"]) <= max_points


def test_times_may_be_given_in_any_zone_and_come_back_in_utc(measured, ask):
    answer = ask(GPUS, gpu=measured.gpus[0].pk, since="2026-11-30T16:05:00+08:00", until="2026-11-30T08:06:00").json()
    assert (answer["since"], answer["until"]) == ("2026-11-30T08:05:00Z", "2026-11-30T08:06:00Z")


@pytest.mark.parametrize(
    ("parameters", "field", "says"),
    [
        ({"fields": "utilization"}, "fields", "utilization_percent"),
        ({"fields": "power_watts,"}, "fields", ""),
        ({"since": "yesterday"}, "since", "2026-11-30T08:00:00Z"),
        ({"since": "2026-11-30T08:00:00 00:00"}, "since", "%2B"),
        ({"since": "2025-10-30T08:09:00Z"}, "since", "2025-10-30T08:11Z"),
        ({"statistic": "median"}, "statistic", "p95"),
        ({"since": "2026-11-30T08:05:00Z", "until": "2026-11-30T08:05:00Z"}, "since", "earlier"),
        ({"until": "2026-12-30T08:05:00Z"}, "until", "future"),
        ({"until": "0001-01-01T00:00:00+14:00"}, "until", ""),
        ({"max_points": "1"}, "max_points", "2000"),
        ({"max_points": "many"}, "max_points", "2000"),
        ({"gpu": "1,x"}, "gpu", "17,18"),
        ({"gpu": ","}, "gpu", "17,18"),
        ({"gpu": "99999999999999999999"}, "gpu", "17,18"),
        ({"gpu": ",".join(map(str, range(1, 600)))}, "gpu", "512"),
        ({"feilds": "power_watts"}, "feilds", "`fields`"),
    ],
)
def test_what_cannot_be_answered_is_named_with_the_remedy(measured, ask, parameters, field, says):
    answer = ask(GPUS, **{"gpu": measured.gpus[0].pk, **parameters})
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, "invalid", field)
    assert says in answer.json()["detail"]


def test_a_series_is_about_something(measured, ask):
    assert ask(GPUS).json()["field"] == "gpu"
    assert ask(HOSTS).json()["field"] == "instance"


def test_more_than_an_answer_can_hold_is_refused(measured, ask, make_instance):
    big = make_instance(name="big", gpus=64)
    answer = ask(GPUS, instance=big.pk, max_points=2000, fields="power_watts,utilization_percent,temperature_celsius")
    assert (answer.status_code, answer.json()["field"]) == (400, "max_points")
    assert "384000" in answer.json()["detail"]


@pytest.mark.parametrize("address", [GPUS, HOSTS])
def test_another_teams_series_does_not_exist(measured, charlie, rival, client, as_user, as_token, address):
    for caller in (as_user(charlie), as_token(rival)):
        answer = caller.get(address, {"instance": measured.instance.pk})
        assert (answer.status_code, answer.json()["field"]) == (404, "instance")
    assert as_token(rival).get(GPUS, {"gpu": measured.gpus[0].pk}).status_code == 404
    assert client.get(address, {"instance": measured.instance.pk}).status_code == 401


def test_the_team_parameter_narrows(measured, alice, as_user, charlie):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    answer = as_user(alice).get(HOSTS, {"instance": measured.instance.pk, "team": "sandbox"})
    assert answer.status_code == 404


@pytest.mark.parametrize("count", [1, 2])
def test_a_series_costs_the_same_queries_however_many_gpus(measured, acme, as_token, django_assert_num_queries, count):
    client = as_token(acme)
    client.get("/api/v1/me/")
    ids = ",".join(str(gpu.pk) for gpu in measured.gpus[:count])
    # Token, visible ids, rows, their machines, the slowest interval, samples.
    with django_assert_num_queries(7):
        assert client.get(GPUS, {"gpu": ids}).status_code == 200


@pytest.mark.parametrize("moment", ["0001-01-01T00:30:00Z", "1970-01-01T00:00:00Z"])
def test_an_end_before_all_samples_is_refused_by_its_name(measured, ask, moment):
    for path, asked in ((GPUS, {"gpu": measured.gpus[0].pk}), (HOSTS, {"instance": measured.instance.pk})):
        answer = ask(path, until=moment, **asked)
        assert answer.status_code == 400
        assert "396 days" in answer.text


@pytest.fixture
def long_measured(measured):
    """The same ten minutes, rolled up."""
    roll_up(now=START + timedelta(hours=2))
    return measured


@pytest.mark.parametrize(
    ("since", "resolution", "seconds"),
    [
        ("2026-11-30T08:00:00Z", "raw", 10),
        ("2026-11-28T08:15:00Z", "5min", 300),
        ("2026-11-23T08:15:00Z", "1h", 3600),
        ("2025-10-31T08:15:00Z", "1h", 57600),
    ],
)
def test_a_series_of_any_span_says_which_table_was_read(long_measured, ask, since, resolution, seconds):
    gpu = long_measured.gpus[0].pk
    answer = ask(GPUS, gpu=gpu, fields="utilization_percent", since=since).json()
    assert (answer["resolution"], answer["bucket_seconds"], answer["percentile_of"]) == (resolution, seconds, None)
    assert len(answer["starts"]) <= 600
    assert {value for value in answer["series"][0]["values"]["utilization_percent"] if value} == {52.5}


def test_a_percentile_says_what_it_was_taken_of(long_measured, ask):
    gpu = long_measured.gpus[0].pk
    short = ask(GPUS, gpu=gpu, fields="utilization_percent", statistic="p95", since="2026-11-30T08:00:00Z").json()
    assert (short["statistic"], short["percentile_of"]) == ("p95", "samples")
    long = ask(HOSTS, instance=long_measured.instance.pk, statistic="p95", since="2026-11-23T08:15:00Z").json()
    assert (long["statistic"], long["percentile_of"]) == ("p95", "1h")
    assert 20.0 in long["series"][0]["values"]["cpu_percent"]
