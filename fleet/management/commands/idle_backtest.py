"""What stopping idle GPUs would have saved on a recorded trace, and which window to choose (docs/idle.md)."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.idle.backtest.outcomes import Outcome, fixed_outcomes
from fleet.idle.backtest.recommend import PRESETS, recommend_window
from fleet.idle.backtest.report import Report, try_policy
from fleet.idle.backtest.runs import PodRuns, runs_of
from fleet.traces import TraceError, read_trace

DEFAULT_POLICY = "balanced"
HIGHEST_MINUTES = 60.0 * 24 * 366
HIGHEST_COST = 1e6
SHOWN_WINDOWS = (5, 15, 20, 60, 120, 180, 300)


@dataclass(frozen=True, slots=True)
class Policy:
    """`window_minutes` as given, or None: learned for `wrong_stop_cost`."""

    name: str
    wrong_stop_cost: float
    window_minutes: float | None = None


class Command(BaseCommand):
    help = (
        "Try a policy of stopping idle GPUs on a trace (CSV or CSV.gz: pod,t_s,gpu_util_percent,memory_used_bytes). "
        "Without --learn its window is learned on the trace itself, so the figures are hindsight."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--trace", type=Path, required=True, help="The recording that the policy is tried on.")
        parser.add_argument("--learn", type=Path, help="The recording that its window is learned from.")
        parser.add_argument(
            "--wrong-stop-cost", type=cost, help="GPU-hours that one wrong stop costs. Default: the policy's."
        )
        parser.add_argument(
            "--policy",
            type=policy,
            default=DEFAULT_POLICY,
            help=f'One of {", ".join(PRESETS)}, or JSON as {{"window_minutes": 60}}. Default: %(default)s.',
        )
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen: Policy = options["policy"]
        wrong_stop_cost = chosen.wrong_stop_cost if options["wrong_stop_cost"] is None else options["wrong_stop_cost"]
        pods = read_runs(options["trace"])
        window = chosen.window_minutes
        if window is None:
            known = read_runs(options["learn"]) if options["learn"] else pods
            window = recommend_window(fixed_outcomes(known), wrong_stop_cost=wrong_stop_cost)
        report = try_policy(pods, window_minutes=window, wrong_stop_cost=wrong_stop_cost)
        for line in in_words(report):
            self.stdout.write(line)
        if options["json"]:
            self.stdout.write(json.dumps(as_json(chosen.name, report)))


def read_runs(path: Path) -> Collection[PodRuns]:
    try:
        trace = read_trace(path)
    except TraceError as error:
        raise CommandError(str(error)) from None
    if trace.bad:
        raise CommandError(f"{path} has {len(trace.bad)} rows that cannot be read, the first: {trace.bad[0]}.")
    pods = runs_of(trace).values()
    if not pods:
        raise CommandError(f"{path} has no reading of gpu_util_percent.")
    return pods


def policy(word: str) -> Policy:
    if word in PRESETS:
        return Policy(word, PRESETS[word])
    try:
        given = json.loads(word)
    except ValueError:
        given = None
    if not isinstance(given, dict) or set(given) - {"window_minutes", "wrong_stop_cost"} or not given:
        raise ArgumentTypeError(
            f'must be one of {", ".join(PRESETS)}, or JSON with window_minutes or wrong_stop_cost: {{"window_minutes": 60}}'
        )
    window = given.get("window_minutes")
    return Policy(
        "fixed" if window is not None else "learned",
        number(given.get("wrong_stop_cost", PRESETS[DEFAULT_POLICY]), "wrong_stop_cost", 0, HIGHEST_COST),
        None if window is None else number(window, "window_minutes", 5, HIGHEST_MINUTES),
    )


def cost(word: str) -> float:
    return number(word, "--wrong-stop-cost", 0, HIGHEST_COST)


def number(given: object, name: str, low: float, high: float) -> float:
    try:
        value = float(given)  # type: ignore[arg-type]  # whatever JSON holds
    except (TypeError, ValueError):
        value = float("nan")
    if isinstance(given, bool) or not isfinite(value) or not low <= value <= high:
        raise ArgumentTypeError(f"{name} must be a number from {low:g} to {high:g}")
    return value


def in_words(report: Report) -> list[str]:
    window = report.window_minutes
    advice = "Do not stop: no window gains enough." if window is None else f"Stop after {window:g} quiet minutes."
    low, high = report.interval
    found = report.outcome
    lines = [
        f"{report.gpu_hours:.1f} GPU-hours recorded, {report.quiet_gpu_hours:.1f} of them quiet.",
        f"{advice} {found.stops} stops, {found.wrong} of them wrong at {report.wrong_stop_cost:g} GPU-hours each.",
        f"Recovered {found.recovered:.1f}, net {report.net:.1f} GPU-hours (90 % of resampled pods: {low:.1f} to {high:.1f}).",
        "window  recovered  wrong       net",
    ]
    shown = [(minutes, one) for minutes, one in report.fixed.items() if minutes in SHOWN_WINDOWS]
    return lines + [
        f"{minutes:4} min {one.recovered:9.1f} {one.wrong:6} {one.net(report.wrong_stop_cost):9.1f}"
        for minutes, one in shown
    ]


def as_json(name: str, report: Report) -> dict[str, Any]:
    return {
        "policy": name,
        "wrong_stop_cost": report.wrong_stop_cost,
        "window_minutes": report.window_minutes,
        "gpu_hours": report.gpu_hours,
        "quiet_gpu_hours": report.quiet_gpu_hours,
        "recovered_gpu_hours": report.outcome.recovered,
        "stops": report.outcome.stops,
        "wrong_stops": report.outcome.wrong,
        "net_gpu_hours": report.net,
        "net_gpu_hours_interval": list(report.interval),
        "best_fixed_net": report.best_fixed_net,
        "share_of_best": report.share_of_best,
        "fixed_windows": [fixed_json(minutes, one, report.wrong_stop_cost) for minutes, one in report.fixed.items()],
    }


def fixed_json(minutes: int, one: Outcome, wrong_stop_cost: float) -> dict[str, Any]:
    return {
        "minutes": minutes,
        "recovered_gpu_hours": one.recovered,
        "wrong_stops": one.wrong,
        "net_gpu_hours": one.net(wrong_stop_cost),
    }
