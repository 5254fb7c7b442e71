"""The dry run on recorded traces: what a quiet run is, what a stop would have done, and the window that is recommended."""

from __future__ import annotations

import json
import random
from functools import reduce
from io import StringIO
from math import log
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from fleet.idle.backtest.outcomes import NOTHING, WINDOWS_MINUTES, Outcome, fixed_outcomes, outcome
from fleet.idle.backtest.recommend import PRESETS, recommend_window
from fleet.idle.backtest.report import try_policy
from fleet.idle.backtest.runs import Ending, PodRuns, QuietRun, quiet_runs, runs_of
from fleet.idle.backtest.smoothing import poisson, smooth_counts
from fleet.traces import Row, read_trace
from tests.services import ROOT

TRACE = ROOT.parent / "shared" / "traces" / "genai_serving_gpu.csv.gz"
STEP = 60.0
HEADER = "pod,t_s,gpu_util_percent,memory_used_bytes\n"


def rows(*utilizations: float | None) -> list[Row]:
    """One reading a minute; None = nothing was read."""
    return [Row(index * STEP, value, None, index + 2) for index, value in enumerate(utilizations) if value is not None]


def spans(*utilizations: float | None) -> list[tuple[float, float, Ending]]:
    found = quiet_runs(rows(*utilizations), step_seconds=STEP)
    return [(run.start / STEP, run.end / STEP, run.ending) for run in found]


@pytest.mark.parametrize(
    ("utilizations", "expected"),
    [
        ((5, 0, 0, 7), [(0, 3, Ending.RETURN)]),
        ((5, 6, 7), []),
        ((5, 0, 0), [(0, 2, Ending.UNKNOWN)]),
        ((0, 0, 5), [(0, 2, Ending.RETURN)]),
        ((0.4, 0, 0.1), [(0, 2, Ending.RETURN)]),
        # Three steps without a reading are a hiccup; more are unknown, whatever comes then.
        ((5, 0, None, None, 0, 5), [(0, 5, Ending.RETURN)]),
        ((5, 0, None, None, None, 5), [(0, 1, Ending.UNKNOWN)]),
        ((5, 0, None, None, None, 0, 5), [(0, 1, Ending.UNKNOWN), (5, 6, Ending.RETURN)]),
        ((5, None, None, None, 5, 0, 5), [(4, 6, Ending.RETURN)]),
        ((0, 5), [(0, 1, Ending.RETURN)]),
        ((0,), [(0, 0, Ending.UNKNOWN)]),
    ],
)
def test_quiet_runs(utilizations, expected):
    assert spans(*utilizations) == expected


def pod(*minutes_and_endings: tuple[float, Ending]) -> PodRuns:
    runs = tuple(QuietRun(0.0, minutes * 60, ending) for minutes, ending in minutes_and_endings)
    return PodRuns(36_000.0, runs)


@pytest.mark.parametrize(
    ("minutes", "ending", "expected"),
    [
        (60, Ending.RETURN, NOTHING),  # over when the stop would come
        (90, Ending.RETURN, Outcome(0.5, 1, 1)),  # exactly half an hour is within it
        (91, Ending.RETURN, Outcome(31 / 60, 1, 0)),
        (61, Ending.UNKNOWN, Outcome(1 / 60, 1, 0)),
    ],
)
def test_what_a_stop_after_an_hour_would_have_done(minutes, ending, expected):
    found = outcome(pod((minutes, ending)), window_minutes=60)
    assert (found.recovered, found.stops, found.wrong) == pytest.approx(
        (expected.recovered, expected.stops, expected.wrong)
    )


def test_never_stopping_does_nothing():
    assert outcome(pod((600, Ending.RETURN)), window_minutes=None) == NOTHING


def test_the_net_takes_wrong_stops_off():
    assert Outcome(10.0, 5, 2).net(4.0) == 2.0


def test_counts_that_follow_a_curve_are_found_again():
    """Twice the window, a quarter of the wrong stops: log-linear, so a Poisson regression has it exactly."""
    counts = [1e6 / minutes**2 for minutes in WINDOWS_MINUTES]
    fitted = poisson([log(minutes) for minutes in WINDOWS_MINUTES], counts)
    assert fitted == pytest.approx(counts, rel=0.01)


def test_nothing_wrong_ever_stays_nothing():
    assert max(smooth_counts(WINDOWS_MINUTES, [0] * len(WINDOWS_MINUTES))) < 0.2


def test_where_stops_gain_nothing_it_says_not_to_stop():
    restless = fixed_outcomes([pod(*[(minutes, Ending.RETURN) for minutes in range(6, 60, 2)])] * 10)
    assert recommend_window(restless, wrong_stop_cost=8.0) is None


def test_where_nights_are_quiet_it_stops_soon():
    nights = fixed_outcomes([pod((600, Ending.RETURN), (4, Ending.RETURN))] * 10)
    assert recommend_window(nights, wrong_stop_cost=2.0) == 5


def test_the_interval_is_of_pods_drawn_anew_and_the_same_each_time():
    pods = [pod((minutes, Ending.UNKNOWN)) for minutes in (10, 100, 1000)]
    first, second = (try_policy(pods, window_minutes=5, wrong_stop_cost=1.0) for _ in range(2))
    assert first.interval == second.interval
    assert first.interval[0] < first.net < first.interval[1]


@pytest.fixture(scope="module")
def recorded():
    if not TRACE.exists():
        pytest.skip(f"{TRACE} is not there.")
    return runs_of(read_trace(TRACE))


@pytest.mark.parametrize(
    ("minutes", "cost", "net"), [(55, 1, 80), (95, 2, 56), (110, 4, 46), (110, 8, 30), (5, 1, -1312), (60, 4, -29)]
)
def test_the_shared_trace_in_hindsight(recorded, minutes, cost, net):
    report = try_policy(recorded.values(), window_minutes=minutes, wrong_stop_cost=cost)
    assert round(report.net) == net
    if net > 0:
        assert report.net == report.best_fixed_net


def test_learned_on_half_of_the_pods_it_holds_on_the_other_half(recorded, record_property):
    """Forty random halves: the mean share of the best window in hindsight, and never a loss that matters."""
    tables = {name: fixed_outcomes([one]) for name, one in recorded.items()}
    costs, draw = (0.5, 1.0, 2.0, 4.0, 8.0), random.Random(7)
    shares: dict[float, list[float]] = {cost: [] for cost in costs}
    nets: dict[float, list[float]] = {cost: [] for cost in costs}
    for _ in range(40):
        names = draw.sample(sorted(tables), len(tables))
        half = len(names) // 2
        learned, tried = (total(tables, part) for part in (names[:half], names[half:]))
        for cost in costs:
            window = recommend_window(learned, wrong_stop_cost=cost)
            net = 0.0 if window is None else tried[window].net(cost)
            shares[cost].append(net / max(one.net(cost) for one in tried.values()))
            nets[cost].append(net)
    means = {cost: sum(found) / len(found) for cost, found in shares.items()}
    record_property("mean_share_of_best", means)
    assert means[1.0] >= 0.9
    assert means[2.0] >= 0.8
    assert means[4.0] >= 0.7
    assert min(min(found) for found in nets.values()) >= 0


def total(tables, names):
    """The outcomes of several pods together, by window."""
    return {minutes: reduce(Outcome.__add__, (tables[name][minutes] for name in names)) for minutes in WINDOWS_MINUTES}


def run(*arguments: str | Path) -> Any:
    out = StringIO()
    call_command("idle_backtest", *map(str, arguments), "--json", stdout=out)
    return json.loads(out.getvalue().strip().splitlines()[-1])


@pytest.fixture
def small(tmp_path):
    """Two GPUs: one works for a minute an hour, one is never quiet."""
    path = tmp_path / "small.csv"
    lines = [f"a,{t * 60},{90 if t % 60 == 0 else 0},1" for t in range(601)]
    lines += [f"b,{t * 60},90,1" for t in range(601)]
    path.write_text(HEADER + "\n".join(lines) + "\n")
    return path


def test_the_command_answers_one_line_of_json(small):
    answer = run("--trace", small, "--policy", '{"window_minutes": 45, "wrong_stop_cost": 0.1}')
    assert answer["policy"] == "fixed"
    assert (answer["gpu_hours"], answer["quiet_gpu_hours"]) == (20.0, 10.0)
    assert (answer["stops"], answer["wrong_stops"], answer["recovered_gpu_hours"]) == (10, 10, pytest.approx(2.5))
    assert answer["net_gpu_hours"] == pytest.approx(1.5)
    assert [one["minutes"] for one in answer["fixed_windows"]] == list(range(5, 301, 5))
    assert answer["share_of_best"] == pytest.approx(1.5 / answer["best_fixed_net"])


def test_the_command_learns_on_one_file_and_tries_on_another(small, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(HEADER + "".join(f"c,{t * 60},{90 if t in {0, 600} else 0},1\n" for t in range(601)))
    answer = run("--trace", other, "--learn", small, "--policy", "careful")
    assert (answer["policy"], answer["wrong_stop_cost"]) == ("careful", PRESETS["careful"])
    assert answer["window_minutes"] is None
    assert run("--trace", other, "--policy", "eager")["window_minutes"] == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "reckless"], "must be one of careful, balanced, eager"),
        (["--policy", '{"window": 5}'], "window_minutes"),
        (["--policy", '{"window_minutes": true}'], "window_minutes must be a number"),
        (["--policy", '{"window_minutes": 1}'], "from 5 to"),
        (["--wrong-stop-cost", "-1"], "--wrong-stop-cost must be a number from 0"),
        (["--wrong-stop-cost", "nan"], "--wrong-stop-cost must be a number"),
        (["--learn", "/nowhere.csv"], "cannot be read"),
    ],
)
def test_the_command_refuses_what_it_cannot_use(small, arguments, words):
    with pytest.raises(CommandError, match=words):
        run("--trace", small, *arguments)


def test_a_trace_with_a_bad_row_is_refused(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(HEADER + "a,0,5,1\na,60,101,1\n")
    with pytest.raises(CommandError, match="line 3"):
        run("--trace", path)
