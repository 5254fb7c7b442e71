"""The real agent takes up what the real ingest asks of it: its own pre-stop file, and its acceptance test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.teams.audit import Actor
from fleet.telemetry.actions.ask import ask_action, offers_action
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.enrolment import create_enrolment_token
from tests.contracts.test_agent_ingest import Served, wait_until
from tests.fakes.nvml.compiled import CompiledNvml

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="the pre-stop file must be root's: run as root"),
]

REPOSITORY = Path(__file__).parents[2]
# The real program, with its pre-stop file in another place than /etc and a heartbeat that tests can wait for
PROGRAM = """
import sys
from agent import sender
from agent.actions import pre_stop
pre_stop.PATH, sender.HEARTBEAT_SECONDS = sys.argv[1], 0.3
from agent.__main__ import main
sys.exit(main(["supervise", sys.argv[2], sys.argv[3], "", ""]))
"""
ACTOR = Actor.system("test")


class Machine:
    def __init__(self, directory: Path, url: str, token: str) -> None:
        self.etc = Path(tempfile.mkdtemp(prefix="rackrent-test-", dir="/opt"))
        self.etc.chmod(0o755)
        self.hook = self.etc / "pre-stop"
        self.directory = directory
        self.nvml = CompiledNvml(directory, "l40s")
        self.settings = directory / "agent.json"
        enrol = ["enrol", "--url", url, "--token", token, "--config", str(self.settings), "--state-dir", str(directory)]
        subprocess.run([sys.executable, "-m", "agent", *enrol], cwd=REPOSITORY, env=self.nvml.environment, check=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        state = self.directory / "state"
        words = [sys.executable, "-c", PROGRAM, str(self.hook), str(self.settings), str(state)]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(words, cwd=REPOSITORY, env=self.nvml.environment, stderr=log)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(30)

    def remove(self) -> None:
        self.end()
        shutil.rmtree(self.etc)

    def write_hook(self, script: str) -> None:
        self.hook.write_text(f"#!/bin/sh\n{script}\n")
        self.hook.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, acme, alice, settings: Any) -> Iterator[Machine]:
    with Served() as url:
        settings.PUBLIC_URL = url
        _, secret = create_enrolment_token(actor=ACTOR, team=acme, max_uses=3)
        one = Machine(tmp_path, url, str(secret.secret))
        yield one
        one.remove()


def ask(name: str, **options: object) -> AgentAction:
    instance = Instance.objects.get()
    wait_until(lambda: offers_action(instance, name))
    return ask_action(
        actor=ACTOR, instance=instance, name=name, options=options, now=timezone.now(), lifetime=timedelta(minutes=1)
    )


def ended(action: AgentAction) -> AgentAction:
    def over() -> bool:
        action.refresh_from_db()
        return action.ended_at is not None

    wait_until(over, 120)
    return action


def test_the_machines_own_file_runs_once_and_its_words_arrive(machine: Machine) -> None:
    runs = machine.directory / "runs"
    machine.write_hook(f'echo "$RACKRENT_ACTION_ID" >>{runs}; echo checkpoint saved')
    machine.start()
    action = ended(ask("pre_stop", timeout_seconds=30))
    assert (action.state, action.result["exit_code"], action.result["output"]) == ("done", 0, "checkpoint saved\n")
    assert runs.read_text().split() == [str(action.pk)]

    # As if its report had been lost on the way: the same is asked again, of an agent that was killed since
    machine.end(signal.SIGKILL)
    AgentAction.objects.filter(pk=action.pk).update(
        state="asked", ended_at=None, expires_at=timezone.now() + timedelta(minutes=5)
    )
    machine.start()
    second = ended(ask_again())
    assert second.state == "done"
    assert runs.read_text().split() == [str(action.pk), str(second.pk)]


def ask_again() -> AgentAction:
    """Beside the open one, which the agent must not begin."""
    instance = Instance.objects.get()
    return AgentAction.objects.create(
        instance=instance, name="pre_stop", expires_at=timezone.now() + timedelta(minutes=5)
    )


def test_a_file_that_others_may_write_is_not_run_and_the_dashboard_hears_why(machine: Machine) -> None:
    machine.write_hook(f"touch {machine.directory}/ran")
    machine.hook.chmod(0o777)
    machine.start()
    action = ended(ask("pre_stop"))
    assert action.state == "failed"
    assert "can be written by others" in action.detail
    assert not (machine.directory / "ran").exists()


def test_what_is_not_in_the_agent_is_refused(machine: Machine) -> None:
    machine.write_hook("true")
    machine.start()
    action = ask("pre_stop")
    AgentAction.objects.filter(pk=action.pk).update(name="sh -c reboot")
    assert "no action" in ended(action).detail


def test_the_acceptance_test_measures_this_machine(machine: Machine) -> None:
    machine.start()
    action = ended(ask("accept", most_seconds=20, when_busy=True))
    assert (action.state, action.detail) == ("done", "")
    found = action.result
    assert (found["gpu"]["count"], found["gpu"]["gpus"][0]["name"]) == (1, "NVIDIA L40S")
    assert found["cpu"]["count"] == len(os.sched_getaffinity(0))
    assert found["memory"]["total_bytes"] > 0
    assert found["network"]["peer"] == "dashboard"
    assert found["network"]["download_bytes_per_second"] > 0
    assert found["network"]["upload_bytes_per_second"] > 0
