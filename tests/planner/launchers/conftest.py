"""The launchers' own Python, and a place in which printed commands are run as printed: two processes on the CPU, no network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from planner.launchers.base import Artefact

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
PROJECT = HERE.parents[2]
PYTHON = PROJECT / ".venv-launchers" / "bin" / "python"
SECONDS = 240


@dataclass(frozen=True)
class Bench:
    """A directory with the tiny model and data; `run` executes shell text there and gives what it printed."""

    folder: Path
    environment: dict[str, str]

    @property
    def model(self) -> str:
        return str(self.folder / "model")

    def start(self, text: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"set -euo pipefail\n{text}"],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, text: str, **variables: str) -> str:
        return finish(self.start(text, **variables))

    def write(self, artefact: Artefact) -> None:
        for file in artefact.files:
            (self.folder / file.name).write_text(file.text, encoding="utf-8")

    def launch(self, artefact: Artefact, **variables: str) -> str:
        """Every command as it is printed, but for the script that installs."""
        self.write(artefact)
        return "".join(self.run(command.text, **variables) for command in artefact.commands)


def finish(process: subprocess.Popen[str]) -> str:
    try:
        out, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate()
    assert process.returncode == 0, f"{out[-2000:]}\n{errors[-6000:]}"
    return out


@pytest.fixture(scope="session")
def launchers_python() -> Path:
    if not PYTHON.exists():
        reason = "the launchers are not installed (make launchers)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return PYTHON


@pytest.fixture(scope="session")
def tiny(launchers_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model and data, made once; each test works on links to them."""
    folder = tmp_path_factory.mktemp("tiny")
    subprocess.run(
        [launchers_python, PROGRAMS / "tiny.py", folder], check=True, env=offline(launchers_python), capture_output=True
    )
    return folder


def offline(python: Path) -> dict[str, str]:
    return {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        # Two machines on one: both sides bind and connect on the loopback.
        "GLOO_SOCKET_IFNAME": "lo",
    }


@pytest.fixture
def bench(launchers_python: Path, tiny: Path, tmp_path: Path) -> Bench:
    for source in tiny.iterdir():
        (tmp_path / source.name).symlink_to(source)
    environment = {**offline(launchers_python), "HF_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    return Bench(tmp_path, environment)


def losses(printed: str) -> list[float]:
    """Of the lines that our scripts print."""
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"step"')]
    return [line["loss"] for line in lines]
