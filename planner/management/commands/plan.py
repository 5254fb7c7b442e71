"""manage.py plan: a plan on the command line, with the input and the answer of the API."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from planner.web.answer import answer
from planner.web.inputs import PlanInput
from planner.web.options import Row, written
from planner.web.query import takes_several

Input = dict[str, Any]


class Command(BaseCommand):
    help = "Plan a training run or a server: what to rent, how to split it, what it takes and what it costs."
    # Arithmetic over files: no database is asked.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "values", nargs="*", metavar="name=value", help="fields of the input, as in docs/planner.md"
        )
        parser.add_argument(
            "--input", metavar="FILE", help="a JSON object with fields of the input; - reads standard input"
        )
        parser.add_argument("--json", action="store_true", help="the whole answer as one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        data = _from_file(options["input"]) | dict(_pair(value) for value in options["values"])
        asked = PlanInput(data=data)
        if not asked.is_valid():
            raise CommandError("\n".join(f"{name}: {_flat(said)}" for name, said in asked.errors.items()))
        told = answer(asked.validated_data)
        if options["json"]:
            self.stdout.write(json.dumps(written(told), ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(told)))


def _from_file(name: str | None) -> Input:
    if name is None:
        return {}
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        data = json.loads(text)
    except (OSError, ValueError) as error:
        raise CommandError(f"--input: {error}") from None
    if not isinstance(data, dict):
        raise CommandError("--input: a JSON object is needed, {…}")
    return data


def _pair(text: str) -> tuple[str, Any]:
    """Lists take commas; config takes @FILE."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"{text}: write name=value")
    if takes_several(name):
        return name, [part for part in value.split(",") if part]
    if name == "config" and value.startswith("@"):
        try:
            return name, Path(value[1:]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CommandError(f"config: {error}") from None
    return name, value


def _flat(said: Any) -> str:
    return " ".join(map(str, said)) if isinstance(said, list) else str(said)


def _lines(told: Row) -> list[str]:
    """The first options and the advice, for a terminal."""
    lines = [_option(row) for row in told["by_gpu"][:10]] or ["nothing fits"]
    lines += [f"{each['gpu_name']}: {each['why']}" for each in told["left_out"][:3]] if told["best"] is None else []
    return [*lines, *told["method"], *told["what_ifs"]]


def _option(row: Row) -> str:
    layout = row["layout"]
    parts = " ".join(f"{name}={layout[name]}" for name in ("data", "tensor", "pipeline", "zero_stage") if layout[name])
    if row["hours"]:
        what = f"{row['hours']['expected']:.1f} h"
        money = f"{row['cost']['expected']:.2f} {row['price']['currency']}" if row["cost"] else "no price"
    else:
        what = f"{row['tokens_per_second']:.0f} tokens/s"
        money = f"{row['price']['per_hour']:.2f} {row['price']['currency']}/h" if row["price"] else "no price"
    return f"{row['gpus']:>3} x {row['gpu_name']:<32} {what:>14} {money:>16}  {row['fit']:<5} {parts}"
