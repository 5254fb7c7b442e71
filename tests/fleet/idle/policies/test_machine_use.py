"""What people say of one machine: how it is used, and until when it may run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError

from fleet.idle.policies.models import MachineUse
from fleet.idle.policies.uses import extend_lease, set_machine_use
from fleet.teams.models import AuditEntry

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOMORROW = NOW + timedelta(days=1)


@pytest.fixture
def use(by_alice):
    return lambda machine, mode="", until=None, now=NOW: set_machine_use(
        actor=by_alice, instance=machine, mode=mode, lease_until=until, now=now
    )


def test_it_is_kept_with_who_said_it(use, make_instance, alice):
    machine = make_instance()
    row = use(machine, "pinned", TOMORROW)
    row.refresh_from_db()
    assert (row.mode, row.lease_until, row.changed_by) == ("pinned", TOMORROW, alice)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_label, entry.new) == (
        "machine_use.change", machine.name, {"used_as": "pinned", "runs_until": TOMORROW.isoformat()}
    )  # fmt: skip


def test_the_same_again_is_no_change(use, make_instance):
    machine = make_instance()
    use(machine, "batch")
    use(machine, "batch")
    assert AuditEntry.objects.count() == 1
    use(machine)
    assert MachineUse.objects.get().mode == ""


@pytest.mark.parametrize(
    ("mode", "until", "field"),
    [("lazy", None, "mode"), ("", NOW, "lease_until"), ("", NOW + timedelta(days=400), "lease_until")],
)
def test_mistakes_name_their_field(use, make_instance, mode, until, field):
    with pytest.raises(ValidationError) as refusal:
        use(make_instance(), mode, until)
    assert set(refusal.value.message_dict) == {field}


def test_a_lease_that_is_over_does_not_keep_people_from_the_rest(use, make_instance):
    machine = make_instance()
    use(machine, "", TOMORROW)
    row = use(machine, "pinned", TOMORROW, now=TOMORROW + timedelta(hours=1))
    assert (row.mode, row.lease_until) == ("pinned", TOMORROW)


def test_no_lease_on_a_machine_that_is_never_touched(use, make_instance):
    machine = make_instance(managed=False)
    assert use(machine, "serving").mode == "serving"
    with pytest.raises(ValidationError, match="register it"):
        use(machine, "serving", TOMORROW)


def test_a_lease_is_extended_and_never_shortened_by_that(use, make_instance, by_alice):
    machine = make_instance()
    assert extend_lease(actor=by_alice, instance=machine, until=TOMORROW, now=NOW).lease_until == TOMORROW
    for earlier in (TOMORROW, NOW + timedelta(hours=1)):
        with pytest.raises(ValidationError):
            extend_lease(actor=by_alice, instance=machine, until=earlier, now=NOW)
    later = TOMORROW + timedelta(days=1)
    use(machine, "batch", TOMORROW)
    row = extend_lease(actor=by_alice, instance=machine, until=later, now=NOW)
    assert (row.lease_until, row.mode) == (later, "batch")
