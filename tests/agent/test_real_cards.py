"""The profiles that stand for cards say what real captures of those cards say, value for value and absence for absence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.agent.nvml_session import running
from tests.agent.shared_captures import capture
from tests.fakes.nvml.library import FakeNvml

MIB = 1 << 20
CARDS = {
    "h100": "nvidia_gpu_exporter__linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01__load.metrics",
    "h100-mig": "nvidia_gpu_exporter__linux-x86_64__nvidia-h100-mig__590.48.01__load.metrics",
    "l40s": "nvidia_gpu_exporter__linux-x86_64__nvidia-l40s__595.80__load.metrics",
    "rtx4080super": "nvidia_gpu_exporter__linux-x86_64__nvidia-geforce-rtx-4080-super__595.71.05__load.metrics",
}
# our field: (their series, their unit times this is ours)
SERIES = {
    "utilization_percent": ("utilization_gpu_ratio", 100),
    "memory_utilization_percent": ("utilization_memory_ratio", 100),
    "memory_used_bytes": ("memory_used_bytes", 1),
    "memory_reserved_bytes": ("memory_reserved_bytes", 1),
    "memory_total_bytes": ("memory_total_bytes", 1),
    "power_watts": ("power_draw_watts", 1),
    "power_limit_watts": ("enforced_power_limit_watts", 1),
    "temperature_celsius": ("temperature_gpu", 1),
    "memory_temperature_celsius": ("temperature_memory", 1),
    "sm_clock_mhz": ("clocks_current_sm_clock_hz", 1e-6),
    "memory_clock_mhz": ("clocks_current_memory_clock_hz", 1e-6),
    "throttle_reasons": ("clocks_event_reasons_active", 1),
    "fan_percent": ("fan_speed_ratio", 100),
    "ecc_corrected": ("ecc_errors_corrected_volatile_total", 1),
    "ecc_uncorrected": ("ecc_errors_uncorrected_volatile_total", 1),
    "remapped_rows_corrected": ("remapped_rows_correctable", 1),
    "remapped_rows_failed": ("remapped_rows_failure", 1),
    "encoder_percent": ("utilization_encoder_ratio", 100),
    "decoder_percent": ("utilization_decoder_ratio", 100),
}


def real(profile: str) -> dict[str, float]:
    pattern = re.compile(r"^nvidia_smi_(\w+)\{uuid=\"[^\"]*\"\} (\S+)$", re.MULTILINE)
    return {name: float(value) for name, value in pattern.findall(capture(CARDS[profile]))}


def reported(profile: str) -> Any:
    with running(FakeNvml(profile)) as session:
        session.sample()
        return session.sample()["gpus"][0]


@pytest.mark.parametrize("profile", CARDS)
def test_values_and_absences_are_those_of_the_real_card(profile: str) -> None:
    said, ours = real(profile), reported(profile)
    for field, (series, factor) in SERIES.items():
        if series in said:
            assert ours[field] == pytest.approx(said[series] * factor), field
        else:
            assert field not in ours, f"{field} is reported though the real card has none"
            assert field in ours["unavailable"]


@pytest.mark.parametrize("profile", ["h100", "l40s", "rtx4080super"])
def test_processes_are_those_of_the_real_card(profile: str) -> None:
    pattern = re.compile(r'compute_app_used_memory_bytes\{pid="(\d+)".*\} (\S+)$', re.MULTILINE)
    said = {int(pid): int(float(memory)) for pid, memory in pattern.findall(capture(CARDS[profile]))}
    assert {row["pid"]: row["memory_bytes"] for row in reported(profile)["processes"]} == said


def test_mig_instances_are_those_of_the_real_card() -> None:
    text = capture("nvidia-smi__linux-x86_64__nvidia-h100-mig__590.48.01.txt")
    load = text[text.index("# load :: query") :]
    said = re.findall(
        r"MIG Device\n.*?GPU Instance ID\s+: (\d+)\n.*?Total\s+: (\d+) MiB\n.*?Used\s+: (\d+) MiB", load, re.DOTALL
    )
    profile = FakeNvml("h100-mig").devices[0].migs
    ours = [
        (
            str(mig.values["gpu_instance"]),
            str(int(mig.values["memory.total"]) // MIB),
            str(int(mig.values["memory.used"]) // MIB),
        )
        for mig in profile
    ]
    assert ours == said[: len(ours)]


def test_every_function_that_is_called_is_in_a_real_driver() -> None:
    exported = set(capture("nvidia-smi__linux-x86_64__nvidia-h100-mig__590.48.01.txt").split())
    library = FakeNvml("h100-mig")
    with running(library) as session:
        session.sample()
        session.sample()
    assert set(library.calls) <= exported
