"""What a stop means is declared twice, as data and in words, and both say the same."""

from __future__ import annotations

import pytest

from fleet.providers.base import Billing, Capability, InstanceState, Part, Sign
from fleet.providers.registry import adapters
from tests.fleet.providers.contract.cast import FAKES

STOP, TERMINATE = Capability.STOP, Capability.TERMINATE
ADAPTERS = adapters()
each_adapter = pytest.mark.parametrize("kind", ADAPTERS)


def with_capability(capability: Capability):
    return pytest.mark.parametrize("kind", [kind for kind, one in ADAPTERS.items() if capability in one.capabilities])


def ending(kind: str, event: str):
    return next((row for row in ADAPTERS[kind].endings if row.event == event), None)


@each_adapter
def test_who_can_be_asked_to_stop_can_stop(kind):
    adapter = ADAPTERS[kind]
    assert (STOP in adapter.capabilities) <= adapter.semantics.can_stop


@each_adapter
def test_who_stops_can_start(kind):
    """Not the other way round: what was shut down from inside is started where a stop saves nothing."""
    capabilities = ADAPTERS[kind].capabilities
    assert (STOP in capabilities) <= (Capability.START in capabilities)


@with_capability(STOP)
def test_a_stop_has_its_row_in_the_table(kind):
    row = ending(kind, "Stop")
    assert row is not None
    billed = ADAPTERS[kind].semantics.billed_when_stopped
    assert (row.gpus.sign is Sign.PAID) == (Part.COMPUTE in billed)
    assert (row.disks_billing.sign is Sign.OFF) <= (not billed)


@with_capability(TERMINATE)
def test_an_end_has_its_row_in_the_table(kind):
    assert ending(kind, "Terminate") is not None
    assert ADAPTERS[kind].semantics.lost_on_terminate


@with_capability(STOP)
def test_lost_data_is_lost_in_words_too(kind):
    row = ending(kind, "Stop")
    lost = row.local_disk.sign is Sign.LOST or row.volumes.sign is Sign.LOST
    assert ADAPTERS[kind].semantics.stop_loses_data == lost


@each_adapter
def test_money_and_quanta_are_sound(kind):
    semantics = ADAPTERS[kind].semantics
    assert len(semantics.currency) == 3
    assert semantics.currency.isupper()
    assert semantics.quantum_seconds >= 1
    assert semantics.minimum_seconds >= 0
    assert Part.COMPUTE not in semantics.billed_after_terminate
    assert not (semantics.lost_on_stop and not semantics.can_stop)


@with_capability(TERMINATE)
def test_it_says_where_it_was_read(kind):
    assert ADAPTERS[kind].semantics.source


@pytest.mark.parametrize("kind", [kind for kind in FAKES if ADAPTERS[kind].semantics.can_stop])
def test_a_stopped_state_is_billed_as_the_semantics_say(kind):
    billed = ADAPTERS[kind].semantics.billed_when_stopped
    stopped = {means.billing for means in FAKES[kind].states.values() if means.state is InstanceState.STOPPED}
    expected = Billing.FULL if Part.COMPUTE in billed else Billing.STORAGE if billed else Billing.NONE
    assert expected in stopped
