"""Batches wait on disk: in order, bounded, through kill -9, a damaged file, a full disk and a wall clock that jumps."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent.outbox import KEPT_SECONDS, Outbox


@pytest.fixture
def outbox(tmp_path: Path):
    box = Outbox(str(tmp_path / "outbox.sqlite3"))
    yield box
    box.close()


def add(outbox: Outbox, number: int, *, made_at: float = 1000.0, steady_at: float = 50.0, boot: str = "b") -> None:
    samples = [{"at": float(number), "n": place} for place in range(4)]
    outbox.add({"v": 1, "agent_version": "0", "samples": samples}, made_at=made_at, steady_at=steady_at, boot_id=boot)


def drain(outbox: Outbox) -> list[float]:
    seen = []
    while (batch := outbox.oldest()) is not None:
        seen.append(batch.document["samples"][0]["at"])  # type: ignore[index]
        outbox.remove(batch.seq)
    return seen


def test_oldest_first(outbox: Outbox) -> None:
    for number in range(5):
        add(outbox, number)
    assert drain(outbox) == [0, 1, 2, 3, 4]


def test_a_sequence_number_is_never_used_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "outbox.sqlite3")
    first = Outbox(path)
    add(first, 1)
    used = first.oldest()
    assert used is not None
    first.remove(used.seq)
    first.close()
    second = Outbox(path)
    add(second, 2)
    batch = second.oldest()
    assert batch is not None
    assert batch.seq > used.seq
    second.close()


def test_what_was_added_outlives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from agent.outbox import Outbox; box = Outbox(sys.argv[1]);"
        "[box.add({'samples': [{'at': float(n)}]}, made_at=1.0, steady_at=1.0, boot_id='b') for n in range(50)];"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path), str(Path(__file__).parents[2])], check=False)
    assert done.returncode == -signal.SIGKILL
    box = Outbox(str(path))
    assert drain(box) == list(range(50))
    box.close()


def test_a_day_is_kept_and_what_is_older_is_dropped_and_counted(outbox: Outbox) -> None:
    add(outbox, 1, steady_at=100.0)
    add(outbox, 2, steady_at=200.0)
    add(outbox, 3, steady_at=150.0 + KEPT_SECONDS)
    assert outbox.dropped() == 1
    assert drain(outbox) == [2, 3]


def test_a_wall_clock_set_a_year_ahead_empties_nothing(outbox: Outbox) -> None:
    add(outbox, 1, made_at=1000.0, steady_at=100.0)
    add(outbox, 2, made_at=1000.0 + 365 * 86400, steady_at=110.0)
    assert drain(outbox) == [1, 2]


def test_batches_of_an_earlier_boot_age_by_the_wall_clock(outbox: Outbox) -> None:
    add(outbox, 1, made_at=1000.0, steady_at=90000.0, boot="before")
    add(outbox, 2, made_at=2000.0, steady_at=5.0)
    assert outbox.waiting() == (2, 1000.0)
    add(outbox, 3, made_at=1500.0 + KEPT_SECONDS, steady_at=6.0)
    assert drain(outbox) == [2, 3]


def test_the_byte_limit_drops_the_oldest(tmp_path: Path) -> None:
    box = Outbox(str(tmp_path / "outbox.sqlite3"), most_bytes=200_000)
    for number in range(400):
        noise = os.urandom(700).hex()
        box.add({"samples": [{"at": float(number), "noise": noise}]}, made_at=1.0, steady_at=1.0, boot_id="b")
    left = drain(box)
    assert left[-1] == 399
    assert 0 < len(left) < 300
    assert box.dropped() == 400 - len(left)
    box.close()


def test_a_batch_that_is_too_large_becomes_two_before_anything_newer(outbox: Outbox) -> None:
    add(outbox, 1)
    add(outbox, 2)
    batch = outbox.oldest()
    assert batch is not None
    assert outbox.split(batch)
    halves = []
    for _ in range(2):
        half = outbox.oldest()
        assert half is not None
        halves.append([(sample["at"], sample["n"]) for sample in half.document["samples"]])  # type: ignore[attr-defined]
        outbox.remove(half.seq)
    assert halves == [[(1, 0), (1, 1)], [(1, 2), (1, 3)]]
    assert drain(outbox) == [2]


def test_a_single_sample_cannot_be_split(outbox: Outbox) -> None:
    outbox.add({"samples": [{"at": 1.0}]}, made_at=1.0, steady_at=1.0, boot_id="b")
    batch = outbox.oldest()
    assert batch is not None
    assert not outbox.split(batch)


def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    path.write_bytes(b"this is no database" * 500)
    box = Outbox(str(path))
    add(box, 1)
    assert drain(box) == [1]
    assert (tmp_path / "outbox.sqlite3.damaged").exists()
    box.close()


def test_a_disk_that_takes_no_more_is_replaced_by_memory_with_nothing_lost(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(outbox, 1)
    outbox._database.execute("PRAGMA query_only = ON")
    add(outbox, 2)
    assert outbox.in_memory
    assert drain(outbox) == [1, 2]


def test_a_disk_that_fails_while_a_batch_is_acknowledged_ends_nothing(outbox: Outbox) -> None:
    add(outbox, 1)
    add(outbox, 2)
    batch = outbox.oldest()
    assert batch is not None
    outbox._database.execute("PRAGMA query_only = ON")
    outbox.remove(batch.seq)
    assert outbox.in_memory
    assert drain(outbox) == [2]


def test_a_batch_that_cannot_be_unpacked_is_dropped_and_the_next_is_sent(outbox: Outbox) -> None:
    add(outbox, 1)
    add(outbox, 2)
    with outbox._database:
        outbox._database.execute("UPDATE batch SET body = x'00' WHERE seq = 1")
    assert drain(outbox) == [2]
    assert outbox.dropped() == 1


def test_the_journal_of_a_damaged_file_is_not_played_into_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    path.write_bytes(b"this is no database" * 500)
    (tmp_path / "outbox.sqlite3-wal").write_bytes(b"an old journal")
    box = Outbox(str(path))
    add(box, 1)
    assert drain(box) == [1]
    assert (tmp_path / "outbox.sqlite3.damaged-wal").read_bytes() == b"an old journal"
    box.close()


def test_a_directory_that_cannot_be_written_means_memory(tmp_path: Path) -> None:
    box = Outbox(str(tmp_path / "missing" / "outbox.sqlite3"))
    assert box.in_memory
    add(box, 1)
    assert drain(box) == [1]
    box.close()


def test_a_day_of_batches_stays_small(tmp_path: Path) -> None:
    """8,640 batches of two samples with 8 GPUs each are a day; a tenth of them must fit a tenth of the limit."""
    path = tmp_path / "outbox.sqlite3"
    box = Outbox(str(path))
    gpu = {f"field_{number}": number * 1.5 for number in range(40)}
    for number in range(864):
        samples = [
            {"at": number * 10.0 + place, "gpus": [{**gpu, "uuid": f"GPU-{gpu_number}"} for gpu_number in range(8)]}
            for place in range(2)
        ]
        box.add({"samples": samples}, made_at=number * 10.0, steady_at=number * 10.0, boot_id="b")
    box.close()
    assert path.stat().st_size < 9_600_000
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM batch").fetchone() == (864,)
    database.close()
