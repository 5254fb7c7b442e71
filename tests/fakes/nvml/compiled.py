"""Builds fake_nvml.c as a real libnvidia-ml.so.1, once in a test run, and feeds it profiles."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.fakes.nvml.library import PROFILES
from tests.programs import needs

SOURCE = Path(__file__).with_name("fake_nvml.c")


class CompiledNvml:
    """A directory for LD_LIBRARY_PATH; ``environment`` is what the agent must be started with."""

    def __init__(self, directory: Path, profile: str) -> None:
        self.directory = directory
        self._profile = directory / "profile.txt"
        self._control = directory / "control.txt"
        said = json.loads((PROFILES / f"{profile}.json").read_text())
        self.uuids = [gpu["uuid"] for gpu in said["gpus"]]
        self._profile.write_text("\n".join(flattened(said)) + "\n")
        self._control.write_text("")
        if not (directory / "libnvidia-ml.so.1").exists():
            compile_library(directory)

    @property
    def environment(self) -> dict[str, str]:
        paths = {"FAKE_NVML_FILE": str(self._profile), "FAKE_NVML_CONTROL": str(self._control)}
        return {**os.environ, "LD_LIBRARY_PATH": str(self.directory), **paths}

    def control(self, *rules: str) -> None:
        """Such as ``hang nvmlDeviceGetPowerUsage *`` or ``15 nvmlDeviceGetName GPU-…``; none puts all right again."""
        temporary = self._control.with_suffix(".new")
        temporary.write_text("".join(rule + "\n" for rule in rules))
        temporary.replace(self._control)


def compile_library(directory: Path) -> None:
    """Skips the test where there is no compiler; in CI there is one."""
    words = [needs("gcc"), "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    target = directory / "libnvidia-ml.so.1"
    subprocess.run([*words, f"-Wl,-soname,{target.name}", "-o", target, SOURCE], check=True)


def flattened(profile: dict[str, Any]) -> list[str]:
    lines = [f"driver {profile['driver']}", f"nvml {profile['nvml']}", f"cuda {profile['cuda']}"]
    for gpu in profile["gpus"]:
        lines += [f"gpu {gpu['uuid']} {gpu['pci_bus_id']} {gpu['name']}", *_measured(gpu)]
        for mig in gpu.get("mig", []):
            lines += [f"mig {mig['uuid']} {mig['values']['gpu_instance']} {mig['name']}", *_measured(mig)]
    return lines


def _measured(device: dict[str, Any]) -> list[str]:
    values = [f"set {key} {value}" for key, value in device["values"].items() if key != "gpu_instance"]
    rates = [f"rate {key} {value}" for key, value in device.get("per_second", {}).items()]
    return [*values, *rates, *(f"process {pid} {memory}" for pid, memory in device.get("processes", []))]
