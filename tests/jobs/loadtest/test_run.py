"""A load test from its rows to its result, through a real SSH server to a server that answers as vLLM does."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.models import SshHost
from fleet.teams.models import AuditEntry
from fleet.telemetry.models import GpuLatest
from jobs.book.models import Attempt, JobState
from jobs.loadtest import run
from jobs.loadtest.manage import LoadRefused, begin_load_test, cancel_load_test, end_silent
from jobs.loadtest.models import LoadState, LoadTest
from jobs.loadtest.plan import LoadPlan, Loop
from jobs.loadtest.run import run_load_test
from jobs.loadtest.thread import Ended
from tests.jobs.conftest import ACTOR
from tests.jobs.loadtest.engine import engine

pytestmark = pytest.mark.django_db
SHORT = LoadPlan(Loop.CLOSED, (1, 3), stage_seconds=1, answer_tokens=8, prompt_tokens=20, request_seconds=20)


def begun(job, plan: LoadPlan = SHORT, **more) -> LoadTest:
    return begin_load_test(actor=ACTOR, job=job, plan=plan, now=timezone.now(), **more)


def ran(job, plan: LoadPlan = SHORT, **more) -> LoadTest:
    test = begun(job, plan, **more)
    assert run_load_test(test_id=test.pk)
    test.refresh_from_db()
    return test


def test_it_loads_the_jobs_own_server_and_says_what_to_set(machine_of, serves, server, monkeypatch):
    monkeypatch.setattr("jobs.loadtest.watch.EVERY_SECONDS", 0.01)
    machine, _sshd = machine_of()
    job = serves(machine, port=server.port)
    test = ran(job)
    assert (test.state, test.why) == (LoadState.DONE, "")
    stages = list(test.stages.all())
    assert [stage.figures["level"] for stage in stages] == [1, 3]
    assert server.most_running == 3
    answered = sum(stage.figures["answered"] for stage in stages)
    # And the first one, which counts nowhere.
    assert len(server.bodies) == answered + 1 == test.progress["begun"] + 1
    assert {asked["model"] for asked in server.bodies} == {"org/tiny"}
    assert 0 < stages[1].peaks["kv_cache_share"] <= 1
    codes = {one["code"] for one in test.advice}
    assert codes == {"max_concurrency", "requests_per_second", "queue_limit", "memory_share"}
    assert AuditEntry.objects.filter(action="load_test.begin").count() == 1


def test_several_replicas_share_the_load(machine_of, serves):
    machines = [machine_of(name)[0] for name in ("a", "b")]
    with engine() as server:
        # Both listen on the same loopback here: that each has its own connection is what its SSH server saw.
        test = ran(serves(*machines, port=server.port))
    assert (test.state, test.replicas) == (LoadState.DONE, 2)
    assert len(server.bodies) == sum(stage.figures["answered"] for stage in test.stages.all()) + 2


def test_the_servers_key_is_one_of_the_jobs_variables(machine_of, serves, server):
    machine, _sshd = machine_of()
    server.key = "sk-verysecret"
    job = serves(machine, port=server.port, secrets={"VLLM_API_KEY": "sk-verysecret"}, serving={"model": "org/tiny"})
    refused = ran(job)
    assert (refused.state, refused.why, refused.detail) == (LoadState.FAILED, "first_request", "key")
    test = ran(job, key_name="VLLM_API_KEY")
    assert test.state == LoadState.DONE
    kept = str([*LoadTest.objects.values(), *test.stages.values(), *AuditEntry.objects.values()])
    assert "sk-verysecret" not in kept
    with pytest.raises(LoadRefused):
        begun(job, key_name="HOME")


def test_a_server_that_is_not_there_ends_it_at_once(machine_of, serves):
    machine, _sshd = machine_of()
    with engine() as gone:
        pass
    test = ran(serves(machine, port=gone.port))
    assert (test.state, test.why) == (LoadState.FAILED, "no_model")
    assert not test.stages.exists()


def test_a_host_key_that_nobody_confirmed_is_not_trusted(machine_of, serves, server):
    machine, _sshd = machine_of(pinned=False)
    job = serves(machine, port=server.port)
    test = ran(job)
    assert (test.state, test.why) == (LoadState.FAILED, "host_key_new")
    assert server.paths == []
    place = machine.ssh[0]
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDtsMxMXm1Gv0tV2aGqQF0hl6fcAOcTmrMhYbQWqSbR"
    SshHost.objects.create(instance=machine, host=place["host"], port=place["port"], pinned=other)
    assert ran(job).why == "host_key_changed"


def test_a_server_that_fails_is_not_loaded_further(machine_of, serves, server, monkeypatch):
    machine, _sshd = machine_of()
    job = serves(machine, port=server.port)
    plan = LoadPlan(Loop.CLOSED, (1, 2, 4, 8), stage_seconds=1, answer_tokens=4, prompt_tokens=20)
    stages = []
    keep = run.keep_stage

    def then_it_fails(test, told, at):
        keep(test, told, at)
        stages.append(told)
        server.status = 503

    monkeypatch.setattr(run, "keep_stage", then_it_fails)
    test = ran(job, plan)
    assert test.state == LoadState.DONE
    # What begins while the news of the first stage is on its way may still be answered.
    assert 2 <= test.stages.count() <= 3
    assert (test.knee_past, test.knee_stage is not None) == ("failed", True)


def test_called_off_it_ends_within_moments_and_keeps_what_it_saw(machine_of, serves, server, monkeypatch):
    machine, _sshd = machine_of()
    plan = LoadPlan(Loop.CLOSED, (1, 2), stage_seconds=300, answer_tokens=4, prompt_tokens=20)
    test = begun(serves(machine, port=server.port), plan)
    follow = run.keep_progress
    answers: list[bool] = []

    def call_off(row, course, at):
        follow(row, course, at)
        if course.begun:
            answers.append(cancel_load_test(actor=ACTOR, test=row, now=at))

    monkeypatch.setattr(run, "keep_progress", call_off)
    assert run_load_test(test_id=test.pk)
    test.refresh_from_db()
    assert (test.state, test.why) == (LoadState.CANCELLED, "cancelled")
    assert answers[0] is True
    assert not any(answers[1:])
    assert test.progress["begun"] > 0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("load-test")]


def test_it_ends_with_its_job(machine_of, serves, server, monkeypatch):
    machine, _sshd = machine_of()
    job = serves(machine, port=server.port)
    plan = LoadPlan(Loop.CLOSED, (1,), stage_seconds=300, answer_tokens=4, prompt_tokens=20)
    monkeypatch.setattr(run, "keep_progress", lambda *_: Attempt.objects.update(state=JobState.STOPPING))
    test = ran(job, plan)
    assert (test.state, test.why) == (LoadState.FAILED, "job_ended")


def test_it_never_lasts_longer_than_planned(machine_of, serves, server, monkeypatch):
    machine, _sshd = machine_of()
    server.options.prefill_seconds = 3
    monkeypatch.setattr(run, "MORE_SECONDS", 0.5)
    plan = LoadPlan(Loop.CLOSED, (1,), stage_seconds=1, request_seconds=1, answer_tokens=4, prompt_tokens=20)
    # The first request alone takes its time-out: nothing was seen.
    assert ran(serves(machine, port=server.port), plan).state == LoadState.FAILED


def test_one_at_a_time_and_only_of_what_serves(serves, begin, make_instance):
    machine = make_instance(managed=True, ssh=[{"host": "192.0.2.1", "port": 22, "user": "root"}])
    training = begin("python train.py", machine)
    with pytest.raises(LoadRefused, match="serves nothing"):
        begun(training)
    job = serves(machine)
    test = begun(job)
    with pytest.raises(LoadRefused, match="under way already"):
        begun(job)
    assert cancel_load_test(actor=ACTOR, test=test, now=timezone.now())
    assert not run_load_test(test_id=test.pk)
    Attempt.objects.filter(job=job).update(state=JobState.PREPARING)
    with pytest.raises(LoadRefused, match="does not run"):
        begun(job)


def test_a_test_whose_worker_was_killed_is_ended(serves, make_instance):
    job = serves(make_instance(managed=True, ssh=[{"host": "192.0.2.1", "port": 22, "user": "root"}]))
    test, now = begun(job), timezone.now()
    LoadTest.objects.update(state=LoadState.RUNNING, started_at=now, seen_at=now)
    assert end_silent(now=now + timedelta(seconds=60)) == 0
    assert end_silent(now=now + timedelta(seconds=180)) == 1
    test.refresh_from_db()
    assert (test.state, test.why) == (LoadState.FAILED, "interrupted")
    # A worker that was only slow finds that it was given up, and writes nothing any more.
    assert run.end(test, SHORT, Ended(), now)
    test.refresh_from_db()
    assert test.state == LoadState.FAILED


def test_memory_is_that_of_the_card_which_the_server_holds(serves, make_instance):
    machine = make_instance(gpus=2, managed=True, ssh=[{"host": "192.0.2.1", "port": 22, "user": "root"}])
    attempt = serves(machine).attempts.get()
    assert run.gpu_memory_share(attempt) is None
    for gpu, used in zip(machine.gpus.order_by("pk"), (70, 1), strict=True):
        GpuLatest.objects.create(
            gpu=gpu,
            sampled_at=timezone.now(),
            received_at=timezone.now(),
            memory_used_bytes=used << 30,
            memory_total_bytes=80 << 30,
        )
    assert run.gpu_memory_share(attempt) == pytest.approx(0.875)
