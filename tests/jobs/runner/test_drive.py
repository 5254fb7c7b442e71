"""Jobs from the row to the end, on real OpenSSH servers."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import SshHost
from fleet.inventory.remote import fingerprint
from jobs.book.manage import stop_job
from jobs.book.models import Attempt, JobState, Node, WhenDone
from jobs.logs.read import whole_log
from jobs.metrics.models import JobPoint
from jobs.runner import course
from jobs.runner import drive as driving
from jobs.runner.drive import drive
from jobs.runner.visit import visit_all
from tests.jobs.conftest import ACTOR, go_on, newest
from tests.jobs.machines import end_jobs

pytestmark = pytest.mark.django_db(transaction=True)


def node_of(job) -> Node:
    return newest(job).nodes.get()


def log_of(job) -> str:
    return b"".join(whole_log(node_of(job))).decode()


def is_running(job) -> bool:
    return job.state == JobState.RUNNING and node_of(job).started_at is not None


def kinds(job) -> list[str]:
    return list(job.events.order_by("at", "pk").values_list("kind", flat=True))


def test_a_training_run_from_the_row_to_its_end(machine_of, begin):
    machine, _server = machine_of()
    job = begin(
        'for step in 1 2 3; do echo "step $step/3 loss=$((4 - step)).5"; done; echo "rank $RACKRENT_NODE_RANK of $RACKRENT_NODES"',
        machine,
    )
    assert holds_in_force(now=timezone.now()).get().reason == "run-1"
    go_on(job)
    assert (job.state, node_of(job).exit_code) == (JobState.SUCCEEDED, 0)
    assert log_of(job) == "step 1/3 loss=3.5\nstep 2/3 loss=2.5\nstep 3/3 loss=1.5\nrank 0 of 1\n"
    assert list(JobPoint.objects.order_by("line").values_list("line", "step", "steps", "loss")) == [
        (1, 1, 3, 3.5),
        (2, 2, 3, 2.5),
        (3, 3, 3, 1.5),
    ]
    assert kinds(job) == ["queued", "preparing", "prepared", "running", "started", "ended", "succeeded"]
    assert not holds_in_force(now=timezone.now()).exists()


def test_a_command_that_fails_says_its_code(machine_of, begin):
    job = begin("echo no; exit 7", machine_of()[0])
    go_on(job)
    assert (job.state, job.why, node_of(job).exit_code) == (JobState.FAILED, "exit", 7)


def test_it_goes_on_while_nobody_reaches_the_machine(machine_of, begin):
    machine, server = machine_of()
    job = go_on(begin("while [ ! -f go ]; do sleep 0.05; done; echo went on", machine), until=is_running)
    host = SshHost.objects.get()
    SshHost.objects.update(port=host.port + 1)
    machine.ssh[0]["port"] += 1
    machine.save()
    server.end_connections()
    for _round in range(3):
        newest(job).__class__.objects.update(next_at=timezone.now())
        drive(attempt_id=newest(job).pk)
    job.refresh_from_db()
    assert (job.state, node_of(job).failures, node_of(job).error) == (JobState.RUNNING, 3, "unreachable")
    machine.ssh[0]["port"] -= 1
    machine.save()
    SshHost.objects.update(port=host.port)
    (server.jobs / newest(job).marker / "work" / "go").touch()
    go_on(job)
    assert (job.state, log_of(job)) == (JobState.SUCCEEDED, "went on\n")
    assert kinds(job).count("reached_again") == 1


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_worker_that_dies_in_a_launch_launches_nothing_twice(machine_of, begin, monkeypatch, where):
    machine, server = machine_of()
    job = begin("echo once >> ../count; sleep 0.3", machine)
    go_on(job, until=lambda job: node_of(job).prepared_at is not None)
    whole = visit_all

    async def dies(errands, **more):
        if where == "after":
            await whole(errands, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(driving, "visit_all", dies)
    with pytest.raises(KeyboardInterrupt):
        go_on(job)
    monkeypatch.setattr(driving, "visit_all", whole)
    assert node_of(job).launched_at is not None
    go_on(job)
    assert job.state == JobState.SUCCEEDED
    assert (server.jobs / newest(job).marker / "count").read_text() == "once\n"


def test_two_workers_take_turns(machine_of, begin):
    job = begin("sleep 0.1", machine_of()[0])
    attempt = newest(job)
    attempt.__class__.objects.update(
        claim="00000000-0000-0000-0000-000000000001", claimed_until=timezone.now() + driving.SLOWEST
    )
    assert not drive(attempt_id=attempt.pk)


def test_stopping_ends_the_tree_and_the_hold(machine_of, begin):
    job = go_on(begin("setsid sleep 600 & echo up; wait", machine_of()[0]), until=is_running)
    assert stop_job(actor=ACTOR, job=job, now=timezone.now())
    assert not stop_job(actor=ACTOR, job=job, now=timezone.now())
    go_on(job)
    assert (job.state, job.why, node_of(job).exit_code) == (JobState.STOPPED, "asked", 143)
    assert not holds_in_force(now=timezone.now()).exists()


def test_a_job_that_was_never_launched_stops_at_once(machine_of, begin):
    job = begin("sleep 600", machine_of()[0])
    stop_job(actor=ACTOR, job=job, now=timezone.now())
    go_on(job)
    assert (job.state, node_of(job).launched_at) == (JobState.STOPPED, None)


def test_a_run_that_was_killed_with_its_keeper_is_lost_and_tried_again(machine_of, begin):
    machine, server = machine_of()
    job = begin("if [ $RACKRENT_ATTEMPT = 1 ]; then echo up; sleep 600; else echo again; fi", machine, retries=1)
    go_on(job, until=is_running)
    pid = int((server.jobs / newest(job).marker / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    go_on(job)
    assert (job.state, job.attempts.count(), log_of(job)) == (JobState.SUCCEEDED, 2, "again\n")
    first = job.attempts.get(number=1)
    assert (first.state, first.why) == (JobState.LOST, "lost")
    assert holds_in_force(now=timezone.now()).count() == 0


def test_the_host_key_is_confirmed_by_a_person_first(machine_of, begin):
    machine, _server = machine_of(pinned=False)
    job = begin("echo hi", machine)
    go_on(job, until=lambda job: node_of(job).failures == 2)
    assert (job.state, node_of(job).error) == (JobState.PREPARING, "host_key_new")
    host = SshHost.objects.get()
    assert fingerprint(host.offered) == node_of(job).error_detail
    host.pinned = host.offered
    host.save()
    assert go_on(job).state == JobState.SUCCEEDED


def test_a_changed_host_key_gets_nothing(machine_of, begin):
    machine, server = machine_of()
    other, _server = machine_of("other")
    SshHost.objects.filter(instance=machine).update(pinned=SshHost.objects.get(instance=other).pinned)
    job = begin("echo hi", machine)
    go_on(job, until=lambda job: node_of(job).failures == 2)
    assert node_of(job).error == "host_key_changed"
    assert not server.jobs.exists()


def test_secrets_are_stars_in_the_log(machine_of, begin):
    job = begin(
        'echo "token is $HF_TOKEN."; env | grep -c HF_TOKEN', machine_of()[0], secrets={"HF_TOKEN": "hf_verysecret"}
    )
    assert b"hf_verysecret" not in bytes(job.secrets)
    go_on(job)
    assert log_of(job) == f"token is {'*' * 13}.\n1\n"


def test_off_when_done_asks_the_provider_and_a_hold_of_somebody_keeps_it(machine_of, begin, alice):
    job = begin("true", machine_of()[0], when_done=WhenDone.STOP)
    go_on(job)
    assert job.state == JobState.SUCCEEDED
    said = job.events.filter(kind="not_stopped").first()
    # The account of the tests may only be looked at.
    assert said is not None
    assert said.values["code"] in {"monitor_only", "unsupported"}


def test_a_chatty_job_is_followed_to_its_end_and_keeps_head_and_tail(machine_of, begin, settings):
    settings.JOB_LOG_CAP_BYTES = 600_000
    command = "echo first; i=0; while [ $i -lt 40 ]; do head -c 60000 /dev/urandom | od -An -tx1 -w64; i=$((i+1)); done; echo last"
    job = go_on(begin(command, machine_of()[0]))
    node = node_of(job)
    assert job.state == JobState.SUCCEEDED
    assert node.log_offset == node.log_size
    kept = log_of(job)
    assert kept.startswith("first\n")
    assert kept.endswith("last\n")
    assert "bytes left out" in kept


def test_of_a_log_that_was_written_too_fast_head_and_end_are_kept(machine_of, begin, monkeypatch):
    monkeypatch.setattr("jobs.runner.visit.READ_BYTES", 1_000)
    monkeypatch.setattr("jobs.runner.visit.BEHIND_BYTES", 20_000)
    monkeypatch.setattr("jobs.runner.visit.END_BYTES", 5_000)
    monkeypatch.setattr("jobs.runner.visit.READ_SECONDS", 60.0)
    job = go_on(begin("seq -f 'line %g' 10000", machine_of()[0]))
    kept = log_of(job).splitlines()
    assert job.state == JobState.SUCCEEDED
    assert kept[0] == "line 1"
    assert kept[-1] == "line 10000"
    assert any("bytes left out" in line for line in kept)
    assert len([line for line in kept if line.startswith("line ")]) < 1_000
    assert node_of(job).log_offset == node_of(job).log_size


def test_it_is_not_over_while_its_last_words_are_still_on_the_machine(machine_of, begin, monkeypatch):
    monkeypatch.setattr("jobs.runner.visit.READ_BYTES", 1000)
    monkeypatch.setattr("jobs.runner.visit.READ_SECONDS", 0.0001)
    job = go_on(begin("for i in $(seq 1 300); do echo line number $i; done; exit 4", machine_of()[0]))
    assert (job.state, node_of(job).exit_code) == (JobState.FAILED, 4)
    assert log_of(job).endswith("line number 300\n")
    assert node_of(job).log_offset == node_of(job).log_size


def test_a_job_whose_directory_is_gone_is_lost(machine_of, begin):
    machine, server = machine_of()
    job = go_on(begin("sleep 60", machine), until=lambda job: node_of(job).started_at is not None)
    end_jobs(server.jobs)
    job = go_on(job)
    assert (job.state, job.why) == (JobState.LOST, "lost")


def test_what_the_machine_never_heard_of_is_stopped_all_the_same(machine_of, begin, monkeypatch):
    monkeypatch.setattr(course, "POLITE", timedelta(0))
    job = go_on(begin("sleep 60", machine_of()[0]), until=lambda job: node_of(job).prepared_at is not None)
    attempt = newest(job)
    Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)
    Node.objects.filter(attempt=attempt).update(launched_at=timezone.now())
    stop_job(actor=ACTOR, job=job, now=timezone.now())
    assert go_on(job).state == JobState.STOPPED


def test_without_its_secrets_nothing_is_begun_and_no_log_is_kept(machine_of, begin, monkeypatch):
    waits = begin("echo $KEY", machine_of()[0], secrets={"KEY": "a-long-secret"})
    monkeypatch.setattr("jobs.runner.drive.secrets_of", lambda _attempt: None)
    for _round in range(3):
        Attempt.objects.filter(job=waits).update(next_at=timezone.now())
        drive(attempt_id=newest(waits).pk)
    assert node_of(waits).prepared_at is None
    monkeypatch.undo()
    job = go_on(waits, until=lambda job: node_of(job).launched_at is not None)
    monkeypatch.setattr("jobs.runner.drive.secrets_of", lambda _attempt: None)
    assert go_on(job).state == JobState.SUCCEEDED
    assert "a-long-secret" not in log_of(job)
