"""What a machine says and a command prints is hostile: it is bounded, it is shown as text, and nothing of it is run or written here."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core import serializers
from django.utils import timezone

from fleet.teams.models import AuditEntry
from jobs.book.models import Attempt, JobState
from jobs.logs.read import whole_log
from jobs.metrics.models import JobPoint
from jobs.runner.drive import drive
from jobs.runner.machine import script
from tests.jobs.conftest import go_on, newest

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "hf_averylongsecret"
LIES = {
    "numbers": r"printf 'launched=1\npid=999999999999999\nexit=4294967296\nsize=-7\nalive=1\nboot=x\nnow_boot=x\n'",
    "words": r"printf 'launched=1\npid=$(reboot)\nexit=;id\nsize=9e99\nalive=1\nboot=\033[2J\000<script>\nnow_boot=<b>\n'",
    "much": "yes launched=1 | head -c 50000000",
    "nothing": "exit 1",
    "bytes": "head -c 100000 /dev/urandom",
    "complaint": r"printf '\033]0;owned\007\000\n' >&2; exit 3",
    "a log that is not there": r"printf 'launched=1\npid=1\nexit=0\nsize=999999999\nboot=x\nnow_boot=x\n'",
}
# What it says to everything else, so that the job gets as far as being looked at.
LIAR = """case $SSH_ORIGINAL_COMMAND in
*"rackrent prepare "*) cat >/dev/null; echo prepared=1 ;;
*"rackrent read "*) : ;;
*"rackrent signal "*) echo signalled=1 ;;
*) %s ;;
esac
"""


def once(job) -> None:
    Attempt.objects.filter(job=job).update(next_at=timezone.now())
    drive(attempt_id=newest(job).pk)


@pytest.fixture
def liar(machine_of, tmp_path):
    def make(lie: str):
        program = tmp_path / "liar.sh"
        program.write_text(LIAR % LIES[lie])
        return machine_of(more=f"ForceCommand sh {program}\n")[0]

    return make


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_machine_that_lies_is_one_that_cannot_be_asked(liar, begin, lie, as_user, alice):
    job = begin("true", liar(lie))
    for _round in range(4):
        once(job)
    node = newest(job).nodes.get()
    assert node.pid is None or 0 < node.pid < 2**31
    assert node.log_size >= 0
    assert node.exit_code in {None, 0}
    assert "\0" not in node.boot_id + node.error_detail
    assert "\x1b" not in node.boot_id + node.error_detail
    page = as_user(alice).get(f"/t/acme/jobs/{job.pk}/").content.decode()
    assert "<script>\n" not in page
    assert "\x1b" not in page


def test_a_log_that_is_shorter_than_the_machine_says_does_not_keep_a_job_open(liar, begin):
    job = go_on(begin("true", liar("a log that is not there")))
    assert job.state == JobState.SUCCEEDED


def test_what_a_command_prints_is_text(machine_of, begin, as_user, alice):
    lines = [
        r"step 99999999999999999999999/1 loss=1e999",
        r"<script>alert(1)</script> \033]0;owned\007 \033[2J \000 \377\376",
        r"{\042loss\042: {\042a\042: 1}, \042step\042: 1e400, \042lr\042: \042<b>\042}",
        r"step 3 loss=nan lr=-inf epoch=1e308 memory: 999999999999GiB tokens_per_second=1e40",
        r"exit=0\npid=1\nsize=0",
    ]
    printed = "; ".join(f"printf '{line}\\n'" for line in lines)
    job = go_on(
        begin(f"{printed}; head -c 3000000 /dev/zero | tr '\\000' A; printf '\\nlast\\n'; exit 5", machine_of()[0])
    )
    node = newest(job).nodes.get()
    assert (job.state, node.exit_code) == (JobState.FAILED, 5)
    kept = b"".join(whole_log(node))
    assert len(kept) == node.log_size
    assert kept.endswith(b"\nlast\n")
    assert JobPoint.objects.filter(step=3).exists()
    browser = as_user(alice)
    for path in ("", "log/0/", "log/0/lines/", "series/"):
        answer = browser.get(f"/t/acme/jobs/{job.pk}/{path}")
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        if "html" in answer["Content-Type"]:
            assert b"<script>alert" not in body
        assert answer["X-Content-Type-Options"] == "nosniff"


@contextmanager
def watched() -> Iterator[list[str]]:
    """What this process starts or writes meanwhile."""
    seen: list[str] = []
    is_on = [True]

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if not is_on:
            return
        if event in {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "os.remove"}:
            seen.append(event)
        if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            seen.append(f"open {arguments[0]}")

    sys.addaudithook(note)
    try:
        yield seen
    finally:
        is_on.clear()


def test_nothing_is_started_or_written_here(machine_of, begin, tmp_path):
    """The whole of a job, with text that would like to be a command, and files that would like to lie elsewhere."""
    machine, server = machine_of()
    job = begin(
        f"echo '$(touch {tmp_path}/a)' `echo b`; ln -s /etc/hostname ../link; echo ../../c",
        machine,
        name="$(reboot); rm -rf ~ #",
        data_path="/data; touch x",
        environment={"A": f"$(touch {tmp_path}/b)`touch {tmp_path}/c`"},
        files=[{"path": "run/start.sh", "text": f"touch {tmp_path}/d", "executable": True}],
    )
    with watched() as seen:
        go_on(job)
    assert job.state == JobState.SUCCEEDED
    assert seen == []
    assert not [tmp_path / name for name in "abcd" if (tmp_path / name).exists()]
    assert (server.jobs / newest(job).marker / "work" / "run" / "start.sh").exists()


@pytest.mark.parametrize(
    "marker",
    ["", "..", "rr-job-", "rr-job-../../x", "rr-job-a b", "rr-job-$(touch x)", "rr-job-A", "rr-job-a/../../b", "-x"],
)
@pytest.mark.parametrize("act", ["prepare", "launch", "look", "read", "signal", "forget"])
def test_the_script_takes_no_marker_that_leads_elsewhere(tmp_path: Path, act: str, marker: str):
    base = tmp_path / "jobs"
    ran = subprocess.run(
        ["sh", "-c", script(), "rackrent", act, marker, "KILL", "1"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "RACKRENT_BASE": str(base)},
        cwd=tmp_path,
        input=b"",
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 64
    assert ran.stdout == b"error=marker\n"
    assert list(tmp_path.iterdir()) == []


def test_secrets_are_in_no_log_of_ours_and_in_no_row(machine_of, begin, caplog):
    """Also where a command fails with the secret in its last words, and a machine is not reached."""
    caplog.set_level(logging.DEBUG)
    machine, _server = machine_of()
    job = begin(
        "echo $HF_TOKEN; printf $HF_TOKEN | base64; printf %s $HF_TOKEN; exit 1", machine, secrets={"HF_TOKEN": SECRET}
    )
    go_on(job)
    assert job.state == JobState.FAILED
    rows = [job, newest(job), newest(job).nodes.get(), *job.events.all(), *AuditEntry.objects.all()]
    said = serializers.serialize("json", rows) + caplog.text + repr(rows)
    assert SECRET not in said
    kept = b"".join(whole_log(newest(job).nodes.get())).decode()
    assert SECRET not in kept
    assert set(kept) == {"*", "\n", *kept.replace("*", "").replace("\n", "")}
    assert len(kept.replace("*", "").replace("\n", "")) <= 4, kept
