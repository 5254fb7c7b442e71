"""What a driver says now and then though it cannot be: dropped with a reason, the rest kept."""

from __future__ import annotations

import math

import pytest

from agent.ranges import RANGES, SENTINELS, plausible
from tests.agent.nvml_session import one_sample, running
from tests.fakes.nvml.library import FakeNvml


def test_a_utilization_of_four_billion_percent_is_dropped() -> None:
    library = FakeNvml("h100")
    library.devices[0].values["utilization.gpu"] = 4294967295
    gpu = one_sample(library)["gpus"][0]
    assert "utilization_percent" not in gpu
    assert gpu["unavailable"]["utilization_percent"] == "out_of_range"
    assert gpu["memory_utilization_percent"] == 11


@pytest.mark.parametrize("field", sorted(RANGES))
@pytest.mark.parametrize("blank", [2**32 - 1, 2**64 - 1, 140737488355328, 9223372036854775794, math.nan, math.inf])
def test_blanks_are_no_reading_of_any_field(field: str, blank: float) -> None:
    assert not plausible(field, blank)


def test_dcgms_blanks_are_known() -> None:
    assert {140737488355328, 9223372036854775792, 9223372036854775794, 0x7FFFFFF0} <= SENTINELS


def test_memory_that_reports_zero_degrees_has_no_sensor() -> None:
    assert not plausible("memory_temperature_celsius", 0)
    assert plausible("temperature_celsius", 0)


def test_activity_that_is_no_number_is_absent() -> None:
    library = FakeNvml("h100")
    library.devices[0].values["gpm.5"] = math.nan
    with running(library) as session:
        session.sample()
        gpu = session.sample()["gpus"][0]
    assert "tensor_activity" not in gpu
    assert gpu["unavailable"]["tensor_activity"] == "out_of_range"
    assert gpu["sm_activity"] == 0.965
