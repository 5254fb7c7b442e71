from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands

from config.runtime import programs


def lines() -> dict[str, str]:
    text = (settings.BASE_DIR / "Procfile").read_text()
    return dict(line.split(": ", 1) for line in text.splitlines())


def test_it_runs_the_same_modules_as_up(tmp_path: Path):
    for program in (programs.worker(), programs.long_worker(), programs.outside_worker(), programs.beat(tmp_path)):
        line, command = lines()[program.name], program.command[program.command.index("--quiet") + 1]
        assert f"{program.command[2]} -A config {command}" in line
        assert queues_of(program.command) == queues_of(line.split())
    assert "config.web" in lines()["web"]


def queues_of(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.startswith(("--queues=", "--hostname="))]


def test_every_module_and_command_in_it_exists():
    for line in lines().values():
        for module in re.findall(r"python -m (\S+)", line):
            assert importlib.util.find_spec(module)
        for command in re.findall(r"manage\.py (\w+)", line):
            assert command in get_commands()


def test_the_example_names_only_variables_that_are_read():
    sources = "".join(path.read_text() for path in (settings.BASE_DIR / "config").rglob("*.py"))
    example = (settings.BASE_DIR / ".env.example").read_text()
    names = re.findall(r"^#?([A-Z_0-9]+)=", example, re.MULTILINE)
    assert len(names) > 10
    assert [name for name in names if f'"{name}"' not in sources] == []
