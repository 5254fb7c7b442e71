"""What an agent takes up of what a dashboard asks: known names, once, in time, not too often, and only what is switched on here."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.actions import desk as desks
from agent.actions import pre_stop
from agent.actions.desk import Desk
from agent.actions.record import KEPT, Record
from agent.settings import Settings, SettingsError, load_settings, save_settings

NOW = 1_795_999_990.0


class Bench:
    """A desk whose pre-stop action counts how often it ran."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *, allowed: list[str] | None = None) -> None:
        self.path = directory / "actions.json"
        self.runs: list[tuple[int, float]] = []
        self.release = threading.Event()
        self.release.set()
        self.woken = 0
        self.paused = False
        self.accepted: list[dict[str, Any]] = []
        monkeypatch.setattr(pre_stop, "run_pre_stop", self._run)
        self.allowed = allowed
        self.hook = directory / "pre-stop"
        self.hook.write_text("")
        self.begin_again()

    def begin_again(self) -> None:
        """As after a restart of the agent."""
        self.desk = Desk(
            Record(str(self.path)),
            allowed=self.allowed,
            wake=self._wake,
            paused=lambda: self.paused,
            accept=self._accept,
            pre_stop_path=str(self.hook),
        )

    def _wake(self) -> None:
        self.woken += 1

    def _run(self, path: str, *, action_id: int, timeout_seconds: float, stopping: Any) -> Any:
        self.runs.append((action_id, timeout_seconds))
        assert self.release.wait(20)
        return "done", {"exit_code": 0}, ""

    def _accept(self, **options: Any) -> Any:
        self.accepted.append(options)
        return "done", {"cpu": {"count": 4}}, ""

    def ask(self, action_id: int = 5, name: str = "pre_stop", expires_at: Any = NOW + 60, **fields: Any) -> None:
        self.desk.take([{"id": action_id, "name": name, "options": {}, "expires_at": expires_at, **fields}], NOW)

    def finish(self) -> None:
        self.release.set()
        for thread in self.desk._threads.values():
            thread.join(20)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def states(bench: Bench) -> list[tuple[Any, Any]]:
    return [(report["id"], report["state"]) for report in bench.desk.reports()]


def test_an_action_is_begun_told_and_ended(bench: Bench) -> None:
    bench.release.clear()
    bench.ask(options={"timeout_seconds": 30})
    assert states(bench) == [(5, "running")]
    bench.desk.told({"id": 5, "state": "running"})
    assert bench.desk.reports() == []
    bench.finish()
    (report,) = bench.desk.reports()
    assert report == {"id": 5, "state": "done", "result": {"exit_code": 0}, "detail": ""}
    assert bench.runs == [(5, 30)]
    bench.desk.told(report)
    assert bench.desk.reports() == []


def test_the_end_is_told_though_the_beginning_is_acknowledged_after_it(bench: Bench) -> None:
    bench.ask()
    bench.finish()
    bench.desk.told({"id": 5, "state": "running"})
    assert states(bench) == [(5, "done")]


def test_it_never_runs_twice_not_even_after_a_restart(bench: Bench) -> None:
    bench.ask()
    bench.finish()
    bench.ask()
    bench.begin_again()
    bench.ask()
    bench.finish()
    assert len(bench.runs) == 1
    assert states(bench) == [(5, "done")], "and what the dashboard has not heard is told again"


def test_one_that_a_restart_cut_short_is_a_failure_and_is_not_begun_again(bench: Bench) -> None:
    bench.release.clear()
    bench.ask()
    bench.begin_again()
    bench.ask()
    (report,) = bench.desk.reports()
    assert (report["state"], report["detail"]) == ("failed", "the agent was stopped while it ran")
    bench.finish()
    bench.release.set()
    assert len(bench.runs) == 1


def test_ids_older_than_what_is_kept_are_not_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(desks._MOST_AN_HOUR, "pre_stop", 10_000)
    for action_id in range(1000, 1000 + KEPT + 1):
        bench.ask(action_id)
        bench.finish()
    ran = len(bench.runs)
    bench.ask(3)
    bench.ask(1000)
    bench.finish()
    assert len(bench.runs) == ran == KEPT + 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "reboot"}, "no action 'reboot'"),
        ({"name": "sh -c 'reboot'"}, "no action"),
        ({"expires_at": NOW}, "too late"),
        ({"expires_at": NOW - 1}, "too late"),
        ({"expires_at": "tomorrow"}, "too late"),
        ({"expires_at": float("nan")}, "too late"),
    ],
)
def test_what_is_not_known_or_late_is_refused_and_reported(bench: Bench, fields: Any, told: str) -> None:
    bench.ask(**fields)
    (report,) = bench.desk.reports()
    assert report["state"] == "failed"
    assert told in str(report["detail"])
    assert bench.runs == []


def test_only_the_dashboards_own_times_are_compared(bench: Bench) -> None:
    """This machine's clock may be years off."""
    bench.desk.take([{"id": 5, "name": "pre_stop", "expires_at": 1060.0}], 1000.0)
    bench.finish()
    assert len(bench.runs) == 1


@pytest.mark.parametrize(
    "asked",
    [
        None,
        "pre_stop",
        {"id": 5},
        [5],
        [{"id": "5", "name": "pre_stop"}],
        [{"id": True, "name": "pre_stop"}],
        [{"id": 5}],
    ],
)
def test_what_is_not_of_the_protocols_form_is_not_read(bench: Bench, asked: Any) -> None:
    bench.desk.take(asked, NOW)
    assert bench.runs == []
    assert bench.desk.reports() == []


@pytest.mark.parametrize("value", ["60; reboot", None, True, 1e9, -3, 10**12])
def test_options_stay_within_limits_that_stand_in_the_agent(bench: Bench, value: Any) -> None:
    bench.ask(options={"timeout_seconds": value, "command": "reboot"})
    bench.finish()
    assert 5 <= bench.runs[0][1] <= 3600


def test_one_of_a_kind_at_a_time_and_the_next_when_it_ended(bench: Bench) -> None:
    bench.release.clear()
    bench.ask(5)
    bench.ask(6)
    assert states(bench) == [(5, "running")]
    bench.finish()
    bench.ask(6)
    bench.finish()
    assert [action_id for action_id, _ in bench.runs] == [5, 6]


def test_a_dashboard_that_was_taken_over_can_not_keep_the_machine_busy(bench: Bench) -> None:
    for action_id in range(1, 21):
        bench.ask(action_id)
        bench.finish()
    assert len(bench.runs) == 12
    assert "too often" in str(bench.desk.reports()[-1]["detail"])


def test_pre_stop_is_offered_only_where_the_file_is(bench: Bench) -> None:
    assert "pre_stop" in bench.desk.offered()
    bench.hook.unlink()
    assert "pre_stop" not in bench.desk.offered()
    bench.ask()
    assert "nothing to run" in str(bench.desk.reports()[0]["detail"])
    assert bench.runs == []


def test_what_the_administrator_switched_off_is_neither_offered_nor_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, allowed=[])
    assert bench.desk.offered() == []
    bench.ask()
    assert "switched off" in str(bench.desk.reports()[0]["detail"])
    assert bench.runs == []


def test_settings_say_which_actions_are_on_and_a_slip_of_the_pen_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "agent.json")
    good = {"url": "https://rackrent.example", "token": "rra_x", "instance_id": 1, "machine_id": "m"}
    save_settings(path, Settings(**good, actions=["pre_stop"]))  # type: ignore[arg-type]
    assert load_settings(path).actions == ["pre_stop"]
    for wrong in ("accept", ["acept"], {"accept": False}):
        Path(path).write_text(json.dumps({**good, "actions": wrong}))
        with pytest.raises(SettingsError, match="'actions'"):
            load_settings(path)


def test_without_a_readable_record_nothing_is_run(bench: Bench) -> None:
    bench.path.write_text("{damaged")
    bench.begin_again()
    assert bench.desk.offered() == []
    bench.ask()
    assert bench.runs == []
    assert bench.desk.reports() == []


def test_what_can_not_be_noted_down_is_not_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent.actions.record.write_privately", full)
    bench.ask()
    assert bench.runs == []


def test_an_error_of_the_agents_own_is_told_and_ends_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(pre_stop, "run_pre_stop", broken)
    bench.ask()
    bench.finish()
    assert bench.desk.reports()[0] == {"id": 5, "state": "failed", "result": {}, "detail": "ValueError: a defect"}


def test_an_acceptance_test_is_told_its_time_and_nothing_else(bench: Bench) -> None:
    bench.ask(name="accept", options={"most_seconds": 60, "when_busy": True, "script": "reboot"})
    bench.finish()
    (told,) = bench.accepted
    assert told.pop("stopping")() is False
    assert told == {"seconds": 60, "when_busy": True}
    assert states(bench) == [(5, "done")]


@pytest.mark.parametrize(("options", "seconds"), [({}, 120), ({"most_seconds": 10**9}, 300), ({"most_seconds": 1}, 20)])
def test_its_time_stays_within_limits(bench: Bench, options: Any, seconds: int) -> None:
    bench.ask(name="accept", options=options)
    bench.finish()
    assert (bench.accepted[0]["seconds"], bench.accepted[0]["when_busy"]) == (seconds, False)


def test_a_paused_agent_tests_nothing_but_still_runs_pre_stop(bench: Bench) -> None:
    bench.paused = True
    assert bench.desk.offered() == ["pre_stop"]
    bench.ask(5, name="accept")
    bench.ask(6)
    bench.finish()
    assert bench.accepted == []
    assert len(bench.runs) == 1


def test_a_test_ends_when_the_machine_is_about_to_be_stopped(bench: Bench) -> None:
    bench.ask(5, name="accept")
    bench.finish()
    bench.release.clear()
    bench.ask(6)
    assert bench.accepted[0]["stopping"]() is True
    bench.finish()
