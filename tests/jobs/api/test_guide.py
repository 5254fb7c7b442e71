"""The programs of docs/jobs.md, run as they stand: real curl and Python against the web process's way, on a machine with a real SSH server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from fleet.teams.models import Scope
from jobs.book.models import OPEN_STATES, Attempt, Job
from jobs.runner.drive import drive
from tests.jobs.api.served import Served
from tests.programs import needs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
GUIDE = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
SECTION = GUIDE.split("## From a program")[1].split("\n## ")[0]
TRAIN = """
import os, time
for step in range(1, 4):
    print(f"step {step}/3 loss {2 / step:.3f} token {os.environ['HF_TOKEN']}", flush=True)
    time.sleep(0.3)
"""


def program(kind: str) -> str:
    found: list[str] = re.findall(rf"```{kind}\n(.+?)```", SECTION, re.DOTALL)
    return found[0]


@pytest.fixture
def runner(transactional_db) -> Iterator[None]:
    """What worker and beat do, in a thread: each attempt that goes on is driven again and again."""
    done = threading.Event()

    def run() -> None:
        try:
            while not done.wait(0.1):
                for pk in Attempt.objects.filter(state__in=OPEN_STATES).values_list("pk", flat=True):
                    Attempt.objects.filter(pk=pk).update(next_at=timezone.now())
                    drive(attempt_id=pk)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    done.set()
    thread.join(60)


@pytest.fixture
def surroundings(runner, machine_of, acme, make_token, settings) -> Iterator[dict[str, str]]:
    """What the programs expect in their environment."""
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    machine, _server = machine_of()
    token, _row = make_token(acme, Scope.OPERATE)
    with Served() as served:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        yield {"PATH": path, "RACKRENT": served.url, "TOKEN": token, "MACHINE": str(machine.pk), "no_proxy": "*"}


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_code_is_sent_begun_followed_and_waited_for_with_curl(surroundings, tmp_path):
    needs("curl")
    (tmp_path / "train.py").write_text(TRAIN)
    said = run(["bash", "-c", program("bash")], tmp_path, surroundings).splitlines()
    job = Job.objects.get()
    assert said == [
        *(f"step {step}/3 loss {2 / step:.3f} token *************" for step in (1, 2, 3)),
        f"job {job.pk}: succeeded",
    ]


def test_it_is_followed_and_called_off_from_python(surroundings, tmp_path):
    said = run([sys.executable, "-c", program("python")], tmp_path, surroundings).splitlines()
    job = Job.objects.get()
    assert said == ["step 1", f"job {job.pk} stopped somebody asked for it"]
