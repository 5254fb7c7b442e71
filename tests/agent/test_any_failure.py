"""Whatever NVML call fails with whatever code: the sample is whole JSON, other GPUs keep their values, no zero is made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.nvml.calls import UnavailableError
from tests.agent.nvml_session import by_uuid, running
from tests.fakes.nvml.library import FakeNvml

# NVML's error codes of today, and the one for everything else
CODES = [*range(1, 31), 999]
PROFILES = ("h100x8", "h100-mig", "a100", "l40s", "rtx4090", "a100-old-driver")
# Without these there is nothing to sample, and the child says so to its parent
FATAL = {"nvmlDeviceGetCount_v2"}
NOT_CALLED_IN_A_SAMPLE = {
    "nvmlInitWithFlags",
    "nvmlShutdown",
    "nvmlErrorString",
    "nvmlEventSetFree",
    "nvmlGpmSampleFree",
}


def functions_of(profile: str) -> list[str]:
    """Every library function that two samples of this profile call."""
    library = FakeNvml(profile)
    with running(library) as session:
        session.sample()
        session.sample()
    return sorted(set(library.calls) - NOT_CALLED_IN_A_SAMPLE)


CALLS = [(profile, function) for profile in PROFILES for function in functions_of(profile)]


def sampled(library: FakeNvml) -> dict[str, Any]:
    """By UUID: what the second of two samples says, times aside."""
    with running(library) as session:
        session.sample()
        message = session.sample()
    assert json.loads(json.dumps(message, allow_nan=False)) == message
    return by_uuid(message)


HEALTHY = {profile: sampled(FakeNvml(profile)) for profile in PROFILES}


def assert_nothing_made_up(broken: dict[str, Any], healthy: dict[str, Any]) -> None:
    """A value is what a healthy card says, or absent; a zero stands only where zero was read."""
    for field, value in broken.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if value == 0:
            assert healthy.get(field) == 0, f"{field} is reported as 0 though it was not read"


@pytest.mark.parametrize("code", CODES)
def test_a_call_that_fails_for_one_gpu_costs_no_other_gpu_anything(code: int) -> None:
    healthy = HEALTHY["h100x8"]
    victim = sorted(healthy)[2]
    for profile, function in CALLS:
        if profile != "h100x8":
            continue
        library = FakeNvml(profile)
        library.fail[function, victim] = code
        rows = sampled(library)
        assert {uuid: row for uuid, row in rows.items() if uuid != victim} == {
            uuid: row for uuid, row in healthy.items() if uuid != victim
        }, function
        assert_nothing_made_up(rows.get(victim, {}), healthy[victim])


@settings(max_examples=150, deadline=None)
@given(call=st.sampled_from(CALLS), code=st.sampled_from(CODES))
def test_a_call_that_fails_for_all_gpus_makes_nothing_up(call: tuple[str, str], code: int) -> None:
    profile, function = call
    library = FakeNvml(profile)
    library.fail[function, ""] = code
    try:
        rows = sampled(library)
    except UnavailableError:
        assert function in FATAL
        return
    for uuid, row in rows.items():
        assert_nothing_made_up(row, HEALTHY[profile].get(uuid, {}))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_several_failures_at_once_and_in_the_middle(data: st.DataObject) -> None:
    """Calls begin to fail between two samples, for some GPUs, with different codes, and then work again."""
    profile = data.draw(st.sampled_from(PROFILES))
    healthy = HEALTHY[profile]
    functions = [function for name, function in CALLS if name == profile and function not in FATAL]
    keys = st.tuples(st.sampled_from(functions), st.sampled_from(["", *healthy]))
    library = FakeNvml(profile)
    with running(library) as session:
        session.sample()
        library.fail = data.draw(st.dictionaries(keys, st.sampled_from(CODES), max_size=6))
        message = session.sample()
        for uuid, row in by_uuid(message).items():
            assert_nothing_made_up(row, healthy.get(uuid, {}))
        json.dumps(message, allow_nan=False)
        library.fail = {}
        session.sample(after_seconds=700)
        whole = by_uuid(session.sample())
    for uuid, row in whole.items():
        assert set(row) == set(healthy[uuid]), "a failure that passed must not cost a value for good"


def test_a_healthy_card_lists_every_field_or_its_reason() -> None:
    for profile in PROFILES:
        for row in HEALTHY[profile].values():
            assert (
                "utilization_percent" in row
                or "utilization_percent" in row.get("unavailable", {})
                or "MIG" in row["uuid"]
            )
