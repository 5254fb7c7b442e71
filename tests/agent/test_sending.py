"""What the sender does with each answer: nothing is lost but what the dashboard refuses for good, and that is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import sender as sending
from agent.backoff import Backoff, jittered
from agent.clock import steady_seconds
from agent.outbox import Outbox
from agent.sender import Sender, describe, verdict
from agent.transport import Answer, Dashboard
from tests.agent.stub_dashboard import StubDashboard


class Bench:
    """A sender without its thread, between an outbox and the stub."""

    def __init__(self, directory: Path, dashboard: StubDashboard) -> None:
        self.outbox = Outbox(str(directory / "outbox.sqlite3"))
        self.configs: list[object] = []
        self.connection = Dashboard(dashboard.url, "rra_own")
        self.sender = Sender(
            self.connection,
            self.outbox,
            boot_id="this-boot",
            heartbeat=lambda: {"queued_batches": 0},
            obey=self.configs.append,
        )

    def add(
        self, *times: float, boot_id: str = "this-boot", made_at: float | None = None, steady_at: float | None = None
    ) -> None:
        self.outbox.add(
            {"v": 1, "agent_version": "0", "samples": [{"at": at} for at in times]},
            made_at=time.time() if made_at is None else made_at,
            steady_at=steady_seconds() if steady_at is None else steady_at,
            boot_id=boot_id,
        )

    @property
    def held_seconds(self) -> float:
        return self.sender._not_before - time.monotonic()


@pytest.fixture
def bench(tmp_path: Path, dashboard: StubDashboard, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(sending, "_REPLAY_PAUSE_SECONDS", 0)
    one = Bench(tmp_path, dashboard)
    yield one
    one.connection.close()
    one.outbox.close()


def times(dashboard: StubDashboard) -> list[list[float]]:
    return [[sample["at"] for sample in batch["samples"]] for batch in dashboard.samples]


def test_replay_is_in_order_and_each_batch_leaves_the_queue_when_acknowledged(
    bench: Bench, dashboard: StubDashboard
) -> None:
    for number in range(20):
        bench.add(float(number))
    bench.sender.send_queue()
    assert times(dashboard) == [[float(number)] for number in range(20)]
    assert [batch["seq"] for batch in dashboard.samples] == list(range(1, 21))
    assert bench.outbox.waiting() == (0, None)


@pytest.mark.parametrize("status", [401, 403, 404, 409, 301, 429, 500, 502, 503])
def test_other_refusals_keep_the_batch(bench: Bench, dashboard: StubDashboard, status: int) -> None:
    bench.add(1.0)
    bench.add(2.0)
    dashboard.answers = [(status, {"error": "no"}, {})]
    bench.sender.send_queue()
    assert dashboard.samples == []
    assert bench.outbox.waiting()[0] == 2
    assert bench.held_seconds > 0.5
    bench.sender.send_queue()
    assert times(dashboard) == [[1.0], [2.0]]


def test_a_refused_token_is_tried_again_slowly(bench: Bench, dashboard: StubDashboard) -> None:
    bench.add(1.0)
    dashboard.answers = [(401, {"error": "bad_token"}, {})]
    bench.sender.send_queue()
    assert 290 < bench.held_seconds < 400
    assert bench.outbox.dropped() == 0


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_kept_and_never_cut_short(bench: Bench, dashboard: StubDashboard, status: int) -> None:
    bench.add(1.0)
    dashboard.answers = [(status, {"error": "busy"}, {"Retry-After": "40"})]
    bench.sender.send_queue()
    assert 39 < bench.held_seconds < 51


@pytest.mark.parametrize("status", [400, 422])
def test_an_invalid_batch_is_dropped_and_counted_and_the_next_is_sent(
    bench: Bench, dashboard: StubDashboard, status: int
) -> None:
    bench.add(1.0)
    bench.add(2.0)
    dashboard.answers = [(status, {"error": "invalid", "field": "samples[0].at"}, {})]
    bench.sender.send_queue()
    assert times(dashboard) == [[2.0]]
    assert bench.outbox.dropped() == 1


def test_a_batch_that_is_too_large_is_halved_until_it_fits(bench: Bench, dashboard: StubDashboard) -> None:
    bench.add(1.0, 2.0, 3.0, 4.0)
    bench.add(5.0)
    dashboard.answers = [(413, {"error": "too_large"}, {}), (413, {"error": "too_large"}, {})]
    bench.sender.send_queue()
    assert times(dashboard) == [[1.0], [2.0], [3.0, 4.0], [5.0]]
    assert bench.outbox.dropped() == 0


def test_a_single_sample_that_is_too_large_is_given_up(bench: Bench, dashboard: StubDashboard) -> None:
    bench.add(1.0)
    bench.add(2.0)
    dashboard.answers = [(413, {"error": "too_large"}, {})]
    bench.sender.send_queue()
    assert times(dashboard) == [[2.0]]
    assert bench.outbox.dropped() == 1


def test_no_dashboard_means_longer_and_longer_waits(bench: Bench, dashboard: StubDashboard) -> None:
    dashboard.close()
    bench.connection.close()
    bench.add(1.0)
    waits = []
    for _ in range(8):
        bench.sender.send_queue()
        waits.append(bench.held_seconds)
    assert waits[0] < 3
    assert waits[-1] > 50
    assert bench.outbox.waiting()[0] == 1


def test_a_clock_that_was_set_back_is_told_by_the_batchs_own_clock(bench: Bench, dashboard: StubDashboard) -> None:
    """Stamped an hour ahead, 30 s ago: ``sent_at`` is on that clock, so the dashboard sees the hour and takes it off."""
    bench.add(1.0, made_at=time.time() + 3600, steady_at=steady_seconds() - 30)
    bench.sender.send_queue()
    assert dashboard.samples[0]["sent_at"] - time.time() == pytest.approx(3630, abs=5)


def test_a_batch_of_an_earlier_boot_is_sent_with_its_boot_and_todays_clock(
    bench: Bench, dashboard: StubDashboard
) -> None:
    bench.add(1.0, boot_id="before", made_at=1.0, steady_at=1e9)
    bench.sender.send_queue()
    assert dashboard.samples[0]["boot_id"] == "before"
    assert dashboard.samples[0]["sent_at"] == pytest.approx(time.time(), abs=5)


def test_answers_carry_the_config_and_heartbeats_do_too(bench: Bench, dashboard: StubDashboard) -> None:
    bench.sender.send_heartbeat()
    bench.add(1.0)
    bench.sender.send_queue()
    assert bench.configs == [dashboard.config, dashboard.config]
    beat = dashboard.heartbeats[0]
    assert {"v": 1, "boot_id": "this-boot", "queued_batches": 0}.items() <= beat.items()


def test_the_thread_sends_when_woken_and_ends_when_stopped(bench: Bench, dashboard: StubDashboard) -> None:
    bench.sender.start()
    dashboard.wait_for(lambda: dashboard.heartbeats)
    bench.add(7.0)
    bench.sender.wake()
    dashboard.wait_for(lambda: dashboard.samples)
    bench.add(8.0)
    bench.sender.stop(10)
    assert not bench.sender.is_alive()
    assert times(dashboard) == [[7.0], [8.0]]


@pytest.mark.parametrize(
    ("status", "action"), [(200, "done"), (413, "split"), (422, "drop"), (500, "retry"), (429, "retry"), (302, "slow")]
)
def test_verdicts(status: int, action: str) -> None:
    assert verdict(status) == action


def test_a_servers_words_are_made_harmless_before_they_are_logged() -> None:
    said = describe(Answer(500, {"error": "x\x1b[2J\n", "detail": "y" * 1000}))
    assert said.isprintable()
    assert len(said) <= 300


def test_waits_double_up_to_the_most_and_never_fall_below_half() -> None:
    backoff = Backoff(first_seconds=2, most_seconds=120)
    waits = [backoff.next_seconds() for _ in range(50)]
    for number, wait in enumerate(waits):
        whole = min(120, 2 * 2**number)
        assert whole / 2 <= wait <= whole
    backoff.reset()
    assert backoff.next_seconds() <= 2
    assert all(40 <= jittered(40) <= 50 for _ in range(100))


def test_after_a_backlog_no_word_is_repeated(
    bench: Bench, dashboard: StubDashboard, caplog: pytest.LogCaptureFixture
) -> None:
    bench.add(1.0)
    dashboard.answers = [(503, {"error": "unavailable"}, {})] * 5
    for _ in range(6):
        bench.sender.send_queue()
    told: list[Any] = [record for record in caplog.records if "refused with 503" in record.getMessage()]
    assert len(told) == 1
