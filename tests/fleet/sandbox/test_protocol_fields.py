"""Simulated agents must speak the protocol as it is written down: every field they send stands in docs/agent-protocol.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet.sandbox import cast
from fleet.sandbox.readings import Machine
from fleet.sandbox.rentals import first_rentals

DOCUMENT = (Path(__file__).parents[3] / "docs" / "agent-protocol.md").read_text()
BORN_AT = 1_796_000_000.0


def words(after: str, until: str) -> set[str]:
    start = DOCUMENT.index(after)
    return set(re.findall(r"\w+", DOCUMENT[start : DOCUMENT.index(until, start)]))


GPU_FIELDS = words("GPU sample fields:", "Host sample fields:")
HOST_FIELDS = words("Host sample fields:", "Event kinds:")
EVENT_KINDS = words("Event kinds:", "`environment`:")
ENVIRONMENT_FIELDS = words("`environment`:", "`200`")
INVENTORY_FIELDS = words('"inventory": [', '"environment"')


def machines() -> list[Machine]:
    return [Machine.of(rental, born_at=BORN_AT) for rental in first_rentals(BORN_AT)]


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_every_field_of_a_sample_is_in_the_protocol(machine: Machine) -> None:
    for at in (BORN_AT - 80_000, BORN_AT + 60):
        sample = machine.sample(at)
        assert set(sample) == {"at", "host", "gpus"}
        assert set(sample["host"]) <= HOST_FIELDS
        for gpu in sample["gpus"]:
            assert set(gpu) <= GPU_FIELDS


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_what_a_card_cannot_count_is_absent_not_zero(machine: Machine) -> None:
    for gpu in machine.sample(BORN_AT - 80_000)["gpus"]:
        assert None not in gpu.values()
        assert ("sm_activity" in gpu) == machine.model.counts_activity
        assert ("ecc_corrected" in gpu) == machine.model.has_ecc
        assert ("sm_activity" in gpu.get("unavailable", {})) != machine.model.counts_activity


def test_nothing_is_read_of_a_lost_gpu() -> None:
    machine = next(machine for machine in machines() if machine.name == "batch-a100-01")
    assert machine.sample(BORN_AT)["gpus"][5] == {"uuid": machine.uuids[5], "state": "lost"}


def test_inventory_and_environment_use_the_protocols_names() -> None:
    for machine in machines():
        assert set(machine.environment()) <= ENVIRONMENT_FIELDS
        for row in machine.inventory():
            assert set(row) <= INVENTORY_FIELDS


def test_happenings_are_event_kinds_of_the_protocol() -> None:
    kinds = {happening.kind for member in cast.MEMBERS for happening in member.happenings}
    assert {"xid", "gpu_lost"} <= kinds <= EVENT_KINDS


def test_gpus_of_all_machines_differ() -> None:
    uuids = [uuid for machine in machines() for uuid in machine.uuids]
    assert len(set(uuids)) == len(uuids) > 100
