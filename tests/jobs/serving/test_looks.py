"""Servers of jobs, looked at through real sshd: ready, read, down, up again, started anew."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.telemetry.serving.keep import keep_readings
from fleet.telemetry.serving.models import ServingLatest, ServingSample
from fleet.telemetry.wire import ServingWire
from jobs.book.models import Attempt, JobState
from jobs.serving.due import add_servers, due
from jobs.serving.models import Probe, Server, ServerState
from jobs.serving.run import DOWN_AFTER, ENDED_AFTER, look_at
from tests.jobs.conftest import go_on, newest

pytestmark = pytest.mark.django_db(transaction=True)
EVERY = timedelta(seconds=15)


def kinds(job) -> list[str]:
    return list(job.events.order_by("at", "pk").values_list("kind", flat=True))


@pytest.mark.parametrize("engine", ["vllm", "tgi", "trtllm", "triton"])
def test_it_is_ready_when_its_model_is_loaded_and_its_metrics_are_read(serve, engine):
    served = serve("--load-seconds", "0.3", engine=engine, model="org/tiny")
    at = timezone.now()
    server = served.becomes_ready(at)
    assert (server.state, server.model_names, server.code) == (ServerState.UP, ["org/tiny"], "")
    assert len(server.short_answers) == 3
    assert {served.ask() for _request in range(3)} == {200}
    server = served.look(at + timedelta(minutes=1))
    latest = ServingLatest.objects.get()
    assert (latest.engine, latest.port, latest.requests_finished) == (engine, served.port, 6)
    probe = Probe.objects.latest("at")
    assert probe.is_up
    assert probe.memory_bytes is not None
    assert 1_000_000 < probe.memory_bytes < 500_000_000
    assert kinds(served.job).count("ready") == 1


def test_while_it_loads_it_is_starting_and_nothing_is_found_of_it(serve):
    served = serve("--load-seconds", "60")
    for _look in range(50):
        server = served.look()
        if server.code == "status":
            break
    assert (server.state, server.code, server.detail, server.ready_at) == (ServerState.STARTING, "status", "503", None)


def test_another_model_than_ordered_is_not_ready(serve):
    served = serve("--model", "org/other", model="org/tiny")
    for _look in range(50):
        server = served.look()
        if server.code == "no_model":
            break
    assert (server.state, server.code, server.model_names) == (ServerState.STARTING, "no_model", ["org/other"])


def test_one_that_lists_no_models_is_taken_at_its_healths_word(serve):
    assert serve("--lists-no-models").becomes_ready().model_names == []


def test_it_is_down_after_some_looks_and_up_when_it_answers_again(serve):
    served = serve("--hang-after", "4")
    at = timezone.now()
    served.becomes_ready(at)
    served.ask()
    for number in range(1, DOWN_AFTER + 1):
        assert served.server.state == ServerState.UP
        server = served.look(at + timedelta(minutes=2) + number * EVERY)
    assert (server.state, server.code, server.detail) == (ServerState.DOWN, "status", "500")
    assert served.attempt.end_asked == ""
    assert kinds(served.job)[-1] == "server_down"


def test_a_server_that_answers_no_more_is_ended_and_started_anew_after_a_while(serve):
    served = serve("--hang-after", "4", restart="unhealthy", most_restarts=1)
    first, at = served.attempt, timezone.now()
    served.becomes_ready(at)
    served.ask()
    for number in range(ENDED_AFTER):
        served.look(at + timedelta(minutes=2) + number * EVERY)
    assert served.attempt.end_asked == "unhealthy"
    go_on(served.job, until=lambda job: newest(job).number == 2)
    first.refresh_from_db()
    assert (first.state, first.why) == (JobState.FAILED, "unhealthy")
    assert served.attempt.next_at - served.attempt.created_at == timedelta(seconds=10)
    go_on(
        served.job, until=lambda job: job.state == JobState.RUNNING and newest(job).nodes.get().started_at is not None
    )
    assert served.becomes_ready().node.attempt.number == 2
    assert kinds(served.job).count("ready") == 2


def test_a_server_that_crashes_is_started_anew_until_its_limit(serve):
    served = serve(command="exit 3", restart="exit", most_restarts=2)
    go_on(served.job)
    assert served.job.state == JobState.FAILED
    assert [row.number for row in Attempt.objects.order_by("number")] == [1, 2, 3]


def test_a_machine_that_is_not_reached_says_nothing_of_its_server(serve):
    served = serve(restart="unhealthy")
    at = timezone.now()
    served.becomes_ready(at)
    served.machine.stop()
    for number in range(1, 12):
        server = served.look(at + number * EVERY)
    assert (server.state, server.code, server.detail, server.failures) == (
        ServerState.UP,
        "not_reached",
        "unreachable",
        0,
    )
    assert Probe.objects.latest("at").is_up is None
    assert served.attempt.end_asked == ""
    assert server.next_at - server.looked_at == timedelta(minutes=2)


def test_what_the_agent_reads_is_not_read_twice(serve):
    served = serve()
    at = timezone.now()
    served.becomes_ready(at)
    own = served.server.read_at
    assert own is not None
    of_agent = ServingWire(engine="vllm", model="org/tiny", port=served.port, requests_running=2.0)
    keep_readings(instance_id=served.node.instance_id, readings=[of_agent], at=at + EVERY)
    before = ServingSample.objects.count()
    server = served.look(at + 2 * EVERY)
    assert (server.read_by_agent, server.read_at, ServingSample.objects.count()) == (True, own, before)
    assert not served.look(at + timedelta(minutes=10)).read_by_agent


def test_only_servers_of_runs_that_run_are_looked_at(serve, begin, make_instance):
    served = serve()
    now = timezone.now()
    assert (add_servers(now=now), add_servers(now=now)) == (1, 0)
    assert due(now=now).count() == 1
    assert look_at(server_id=Server.objects.get().pk, now=now) is not None
    assert due(now=now).count() == 0
    Attempt.objects.filter(pk=served.attempt.pk).update(state=JobState.STOPPING)
    assert due(now=now + timedelta(hours=1)).count() == 0
