"""Start, stop, reboot and terminate: accepted, not done; asked again, accepted again."""

from __future__ import annotations

import pytest

from fleet.providers.base import Billing, Capability, InstanceState, Part
from fleet.providers.errors import NotFound, ProviderError, Unavailable
from tests.fleet.providers.contract.cast import FAKES, each, has

FIND, START, STOP = Capability.FIND, Capability.START, Capability.STOP
TERMINATE, REBOOT = Capability.TERMINATE, Capability.REBOOT
ACTS = (START, STOP, TERMINATE, REBOOT)
ON_ITS_WAY = {InstanceState.PROVISIONING, InstanceState.STARTING, InstanceState.RUNNING}

each_act = pytest.mark.parametrize(
    ("fake", "act"),
    [(kind, act) for kind in FAKES for act in ACTS if has(kind, act)],
    indirect=["fake"],
    ids=str,
)


def state_of(adapter, fake, ref):
    fake.settle()
    return adapter.instance(ref).state


@each(FIND, STOP)
def test_a_stop_stops(adapter, fake):
    first, other = fake.seed(2)
    adapter.stop(first)
    assert state_of(adapter, fake, first) is InstanceState.STOPPED
    assert state_of(adapter, fake, other) is InstanceState.RUNNING


@each(FIND, STOP)
def test_a_stop_of_what_is_stopped_is_accepted(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    fake.settle()
    adapter.stop(ref)
    assert state_of(adapter, fake, ref) is InstanceState.STOPPED


@each(FIND, STOP)
def test_a_stop_ends_the_charge_that_the_semantics_say_it_ends(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    fake.settle()
    billed = type(adapter).semantics.billed_when_stopped
    expected = Billing.FULL if Part.COMPUTE in billed else Billing.STORAGE if billed else Billing.NONE
    assert adapter.instance(ref).billing is expected


@each(FIND, STOP, START)
def test_a_stopped_machine_starts(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    fake.settle()
    adapter.start(ref)
    assert state_of(adapter, fake, ref) in ON_ITS_WAY


@each(FIND, START)
def test_a_start_of_what_runs_is_accepted(adapter, fake):
    (ref,) = fake.seed()
    adapter.start(ref)
    assert state_of(adapter, fake, ref) is InstanceState.RUNNING


@each(FIND, REBOOT)
def test_a_reboot_leaves_it_running(adapter, fake):
    (ref,) = fake.seed()
    adapter.reboot(ref)
    assert len(fake.asked("reboot")) == 1
    assert state_of(adapter, fake, ref) in ON_ITS_WAY


@each(TERMINATE)
def test_an_end_ends_this_machine_alone(adapter, fake):
    first, other = fake.seed(2)
    adapter.terminate(first)
    fake.settle()
    assert fake.is_gone(first)
    assert not fake.is_gone(other)


@each(FIND, TERMINATE)
def test_what_was_ended_is_no_more_or_shown_as_terminated(adapter, fake):
    (ref,) = fake.seed()
    adapter.terminate(ref)
    fake.settle()
    machine = adapter.instance(ref)
    assert machine is None or (machine.state, machine.billing) == (InstanceState.TERMINATED, Billing.NONE)


@each(TERMINATE)
def test_an_end_of_what_is_gone_is_accepted(adapter, fake):
    (ref,) = fake.seed()
    adapter.terminate(ref)
    fake.settle()
    adapter.terminate(ref)
    assert fake.is_gone(ref)


@each(FIND, STOP, TERMINATE)
def test_a_stopped_machine_can_be_ended(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    fake.settle()
    adapter.terminate(ref)
    fake.settle()
    assert fake.is_gone(ref)


def seeded_for(fake, act):
    """A machine on which the act has an effect: who starts what runs may look first, and ask nothing."""
    (ref,) = fake.seed()
    if act is START:
        stopped = (word for word, means in fake.states.items() if means.state is InstanceState.STOPPED)
        fake.show(ref, raw_state=next(stopped))
    return ref


@each_act
def test_an_act_that_is_refused_raises_and_is_not_tried_again(adapter, fake, act):
    ref = seeded_for(fake, act)
    fake.refuse(500, on=str(act))
    with pytest.raises(Unavailable):
        getattr(adapter, str(act))(ref)
    assert len(fake.asked(str(act))) == 1
    assert not fake.is_gone(ref)


@each_act
def test_an_act_whose_answer_is_lost_raises_and_is_not_tried_again(adapter, fake, act):
    ref = seeded_for(fake, act)
    fake.lose_answer(on=str(act))
    with pytest.raises(Unavailable):
        getattr(adapter, str(act))(ref)
    assert len(fake.asked(str(act))) == 1


@each_act
def test_a_gateways_404_is_no_success(adapter, fake, act):
    """ "Already gone" is believed of the provider alone."""
    ref = seeded_for(fake, act)
    fake.refuse(404, b"<html>404</html>", on=str(act))
    with pytest.raises(ProviderError):
        getattr(adapter, str(act))(ref)


@each_act
def test_an_act_on_what_is_gone_is_not_found_but_for_the_end(adapter, fake, act):
    (ref,) = fake.seed()
    fake.machines.clear()
    if act is TERMINATE:
        adapter.terminate(ref)
        return
    with pytest.raises(NotFound):
        getattr(adapter, str(act))(ref)
