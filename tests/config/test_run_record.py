from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from config.embedded.processes import started_at
from config.runtime.record import AlreadyRunningError, RecordedProcess, RunRecord, end_orphans

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
HOLDER = """
import sys, time
from pathlib import Path
from config.runtime.record import RunRecord
record = RunRecord(Path(sys.argv[1]))
record.acquire()
record.write(address="http://127.0.0.1:8400", children=[("web", int(sys.argv[2]))])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def orphan():
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        yield process
        process.kill()


def killed_up(home: Path, child_pid: int) -> int:
    """Run an `up` that records a child and is killed; returns its number."""
    command = [sys.executable, "-c", HOLDER, str(home), str(child_pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert RunRecord(home).is_held
        with pytest.raises(AlreadyRunningError, match=rf"process {holder.pid}, at http://127.0.0.1:8400.*kill"):
            RunRecord(home).acquire()
        holder.kill()
    return holder.pid


def test_a_second_run_stands_back_and_says_who_runs(tmp_path: Path, orphan: subprocess.Popen[bytes]):
    killed_up(tmp_path, orphan.pid)
    assert not RunRecord(tmp_path).is_held


def test_after_a_kill_the_next_run_finds_and_ends_what_was_left(tmp_path: Path, orphan: subprocess.Popen[bytes]):
    killed_up(tmp_path, orphan.pid)
    record = RunRecord(tmp_path)
    said: list[str] = []
    found = record.acquire()
    assert [(process.name, process.pid) for process in found] == [("web", orphan.pid)]
    end_orphans(found, said.append)
    assert orphan.wait(10) < 0
    assert said == [f"ending web (process {orphan.pid}), left over from a run that was killed"]
    record.release()


def test_a_process_that_only_has_the_number_of_a_dead_child_is_left_alone(tmp_path: Path, orphan):
    record = RunRecord(tmp_path)
    record.acquire()
    record.write(address="http://127.0.0.1:8400", children=[("web", orphan.pid)])
    text = record.path.read_text()
    record.path.write_text(text.replace(started_at(orphan.pid) or "", "another boot:1"))
    changed = record.path.read_text()
    record.release()
    record.path.write_text(changed)
    assert record.acquire() == []
    record.release()


def test_a_damaged_record_does_not_keep_it_down(tmp_path: Path):
    (tmp_path / "up.json").write_text('{"pid": 1')
    record = RunRecord(tmp_path)
    assert record.acquire() == []
    record.release()


def test_a_process_is_known_by_number_and_start():
    ourselves = RecordedProcess.of("test", os.getpid())
    assert ourselves
    assert ourselves.is_alive
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        deadline = time.monotonic() + 20
        while started_at(ended.pid) is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        # Ended but not waited for: a zombie is no running process.
        assert RecordedProcess.of("test", ended.pid) is None
