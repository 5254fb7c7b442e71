"""Which way a pre-stop action is run, what is believed of it, and that it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.idle.hooks import running, tasks
from fleet.idle.hooks.models import HookRun, HookState
from fleet.idle.hooks.over_ssh import Ran
from fleet.idle.hooks.words import hook_words
from fleet.idle.shutdown.course import Hook
from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import set_ssh_key
from fleet.teams.audit import Actor
from fleet.telemetry.actions.report import Told, take_report
from fleet.telemetry.models import Agent

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TEN = timedelta(minutes=10)


@pytest.fixture
def machine(make_instance):
    return make_instance(ssh=[{"host": "198.51.100.20", "port": 22, "user": "root", "kind": "direct"}])


@pytest.fixture
def sent(monkeypatch, django_capture_on_commit_callbacks) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(running, "run_soon", found.append)
    return found


@pytest.fixture
def reachable(machine, acme, monkeypatch):
    """The team has a key, and somebody has confirmed the machine's."""
    key = set_ssh_key(actor=Actor.system("test"), team=acme)
    SshHost.objects.create(instance=machine, host="198.51.100.20", port=22, pinned=key.public_key, pinned_at=NOW)
    return machine


@pytest.fixture
def offering(machine):
    Agent.objects.create(instance=machine, token_hash="h", prefix="rra_x", heartbeat_at=NOW, actions=["pre_stop"])
    return machine


def test_a_machine_with_no_way_to_it_has_none(machine):
    assert running.begin_hook(instance=machine, timeout=TEN, now=NOW) is None


def test_an_unconfirmed_host_key_is_no_way(machine, acme):
    set_ssh_key(actor=Actor.system("test"), team=acme)
    assert running.begin_hook(instance=machine, timeout=TEN, now=NOW) is None


def begun(machine):
    run = running.begin_hook(instance=machine, timeout=TEN, now=NOW)
    assert run is not None
    return run


class TestByItsAgent:
    def test_it_is_asked_and_believed(self, offering):
        run = begun(offering)
        assert (run.way, run.action.name, run.action.options) == ("agent", "pre_stop", {"timeout_seconds": 600})
        assert running.look_at_hook(run, now=NOW) is Hook.RUNNING
        told = Told(action_id=run.action.pk, state="done", result={"exit_code": 0, "output": "a\nsaved 3 files\n"})
        take_report(instance_id=offering.pk, told=told, now=NOW)
        assert running.look_at_hook(run, now=NOW) is Hook.DONE
        assert (run.exit_code, run.last_line) == (0, "saved 3 files")

    def test_it_says_no(self, offering):
        run = begun(offering)
        told = Told(action_id=run.action.pk, state="failed", result={"exit_code": 3, "output": "disk full"})
        take_report(instance_id=offering.pk, told=told, now=NOW)
        assert running.look_at_hook(run, now=NOW) is Hook.FAILED
        assert hook_words(run) == "pre-stop action (by its agent): it ended with an error (status 3): disk full"

    def test_asked_twice_it_is_one_action(self, offering):
        assert begun(offering).action == begun(offering).action


class TestOverSsh:
    @pytest.fixture
    def run(self, reachable, sent):
        return begun(reachable)

    def look(self, run, minutes=0.0):
        return running.look_at_hook(run, now=NOW + timedelta(minutes=minutes))

    @pytest.mark.parametrize(
        ("ran", "state"),
        [(Ran("none"), Hook.NONE), (Ran("", 0, "ok"), Hook.DONE), (Ran("said_no", 1), Hook.FAILED), (Ran("ssh_unreachable"), Hook.FAILED)],
    )  # fmt: skip
    def test_what_it_said(self, run, monkeypatch, ran, state):
        monkeypatch.setattr(tasks, "_ran", lambda _run, _seconds: ran)
        assert self.look(run) is Hook.RUNNING
        assert tasks.run_once(run_id=run.pk, now=NOW)
        assert self.look(run) is state

    def test_it_is_taken_up_once(self, run, monkeypatch):
        monkeypatch.setattr(tasks, "_ran", lambda _run, _seconds: Ran("", 0))
        assert tasks.run_once(run_id=run.pk, now=NOW)
        assert not tasks.run_once(run_id=run.pk, now=NOW)

    def test_a_worker_that_died_in_it_leaves_a_failure(self, run):
        HookRun.objects.update(state=HookState.RUNNING)
        assert self.look(run, 9) is Hook.RUNNING
        assert self.look(run, 10) is Hook.FAILED
        assert run.code == "no_end"
        assert not tasks.run_once(run_id=run.pk, now=NOW)

    def test_a_task_that_was_lost_is_sent_again(self, run, sent, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            self.look(run, 0.5)
            self.look(run, 1.5)
            self.look(run, 1.6)
        assert sent == [run.pk]

    def test_late_it_is_not_begun(self, run):
        assert not tasks.run_once(run_id=run.pk, now=NOW + TEN)
