"""What goes into a batch: within the protocol's limits, once where once is enough, and always valid JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.batching import Batcher, rounded, shortened
from agent.outbox import Outbox


@pytest.fixture
def outbox(tmp_path: Path):
    box = Outbox(str(tmp_path / "outbox.sqlite3"))
    yield box
    box.close()


def flushed(batcher: Batcher, outbox: Outbox) -> Any:
    assert batcher.flush(outbox, made_at=1.0, steady_at=1.0, boot_id="b")
    batch = outbox.oldest()
    assert batch is not None
    outbox.remove(batch.seq)
    return batch.document


def test_nothing_gathered_is_no_batch(outbox: Outbox) -> None:
    assert not Batcher().flush(outbox, made_at=1.0, steady_at=1.0, boot_id="b")


def test_news_is_told_once_and_again_when_it_changes(outbox: Outbox) -> None:
    batcher = Batcher()
    batcher.tell("inventory", [{"uuid": "a"}])
    assert flushed(batcher, outbox)["inventory"] == [{"uuid": "a"}]
    batcher.tell("inventory", [{"uuid": "a"}])
    assert not batcher.flush(outbox, made_at=1.0, steady_at=1.0, boot_id="b")
    batcher.tell("inventory", [{"uuid": "b"}])
    assert flushed(batcher, outbox)["inventory"] == [{"uuid": "b"}]


def test_more_samples_and_events_than_a_batch_may_hold_wait_for_the_next(outbox: Outbox) -> None:
    batcher = Batcher()
    for number in range(800):
        batcher.add_sample({"at": float(number)})
        batcher.add_event({"at": float(number), "kind": "xid"})
    assert batcher.full
    counts = []
    while batcher.flush(outbox, made_at=1.0, steady_at=1.0, boot_id="b"):
        batch = outbox.oldest()
        assert batch is not None
        outbox.remove(batch.seq)
        document: Any = batch.document
        counts.append((len(document["samples"]), len(document.get("events", []))))
    assert counts == [(720, 256), (80, 256), (0, 256), (0, 32)]


def test_at_most_64_gpus_and_disks_a_sample(outbox: Outbox) -> None:
    batcher = Batcher()
    disks = [{"device": str(number)} for number in range(100)]
    batcher.add_sample({"at": 1.0, "gpus": [{"uuid": str(number)} for number in range(70)], "host": {"disks": disks}})
    sample = flushed(batcher, outbox)["samples"][0]
    assert (len(sample["gpus"]), len(sample["host"]["disks"])) == (64, 64)


def test_names_from_anywhere_are_cut_and_made_valid() -> None:
    said = shortened({"name": "x" * 500, "bad": "\udcff", "rows": [{"deep": "y" * 300}], "number": 5})
    assert len(said["name"]) == 200
    assert len(said["rows"][0]["deep"]) == 200
    json.dumps(said).encode()
    assert said["bad"].encode() == b"?"


def test_numbers_are_no_longer_than_they_are_known() -> None:
    assert rounded({"a": 0.1234567891, "b": 123456.78912, "c": 7, "d": [1 / 3], "e": True}) == {
        "a": 0.123457,
        "b": 123456.789,
        "c": 7,
        "d": [0.333333],
        "e": True,
    }
