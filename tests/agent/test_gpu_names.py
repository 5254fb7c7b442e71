"""Text from the driver that is no text: the GPU is named all the same, and its figures are kept."""

from __future__ import annotations

import pytest

from agent.nvml.inventory import UNKNOWN_NAME
from tests.agent.nvml_session import one_sample
from tests.fakes.nvml.library import FakeNvml

# What R555 returned under WSL: bytes that are no UTF-8, and would be mojibake in any other codec
GARBAGE = [0xF8, 0x95, 0xA0, 0x81, 0x90, 0xC2]


@pytest.fixture
def garbled() -> FakeNvml:
    library = FakeNvml("rtx4090")
    library.devices[0].said["name"] = GARBAGE
    return library


def test_undecodable_name_becomes_unknown_and_the_figures_stay(garbled: FakeNvml) -> None:
    message = one_sample(garbled)
    assert message["inventory"][0]["name"] == UNKNOWN_NAME
    assert message["gpus"][0]["power_watts"] == pytest.approx(402.11)


def test_a_driver_that_returns_garbage_is_called_suspect(garbled: FakeNvml) -> None:
    assert "unreadable text" in one_sample(garbled)["detail"]


def test_garbage_instead_of_a_uuid_gives_a_name_that_stays_the_same() -> None:
    library = FakeNvml("rtx4090")
    library.devices[0].said["uuid_text"] = GARBAGE
    first, second = one_sample(library), one_sample(library)
    assert first["gpus"][0]["uuid"] == second["gpus"][0]["uuid"] == "GPU-at-00000000:41:00.0"


def test_control_characters_in_a_name_are_not_passed_on() -> None:
    library = FakeNvml("rtx4090")
    library.devices[0].said["name"] = "NVIDIA \x1b[31mRTX"
    assert one_sample(library)["inventory"][0]["name"] == UNKNOWN_NAME
