"""Reads the provider for an operation and writes what that proves. The machine's row is written by the same reading, at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from fleet.inventory.environments.carry import carry_environment
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.missing import may_deny
from fleet.inventory.models import Instance
from fleet.inventory.operations.calls import keeps_token, machine_ref
from fleet.inventory.operations.journal import audit, change, fail, note
from fleet.inventory.operations.models import Operation, OperationKind, OperationState
from fleet.inventory.operations.orders import FORGOTTEN
from fleet.inventory.operations.proof import MOVING, UNMOVED, Case, Judgement, Verdict, judge, judge_image
from fleet.inventory.operations.readings import all_machines, bearing, read_image, read_machine
from fleet.inventory.operations.sending import adopt, postpone_account, send, since_sent, told
from fleet.inventory.operations.timing import asked_to_wait, is_forgotten, until_next_read
from fleet.inventory.probe import apply_absence, apply_reading, name_machine
from fleet.providers.base import Part, Provider, ProviderImage, ProviderInstance
from fleet.providers.errors import ProviderError, RateLimited

# What may be sent again without doing it twice. A launch only where the provider keeps its token.
REPEATABLE = frozenset({OperationKind.START, OperationKind.STOP, OperationKind.TERMINATE})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a complete reading that began at `at` showed; None: it did not name what was looked for."""

    at: datetime
    machine: ProviderInstance | None = None
    image: ProviderImage | None = None


def verify(adapter: Provider, operation: Operation) -> None:
    """One reading, and one call more where all shows that nothing came of the last."""
    at = timezone.now()
    try:
        reading = read(adapter, operation, at)
    except Exception as error:  # noqa: BLE001 - an adapter with a bug must not end an operation; the bug is logged
        not_read(operation, as_provider_error(error, operation.account))
        return
    judgement = write(adapter, operation, reading)
    if judgement is not None and send_again(adapter, operation, judgement):
        send(adapter, operation)


def read(adapter: Provider, operation: Operation, at: datetime) -> Reading:
    if operation.kind == OperationKind.SAVE_IMAGE:
        name, since = str(operation.spec["name"]), operation.requested_at
        return Reading(at, image=read_image(adapter, external_id=operation.result_id, name=name, since=since))
    if operation.instance is None:
        return Reading(at, machine=bearing(operation.token, all_machines(adapter)))
    return Reading(at, machine=read_machine(adapter, machine_ref(operation.instance)))


@transaction.atomic
def write(adapter: Provider, operation: Operation, reading: Reading) -> Judgement | None:
    """What was read, onto the machine and the operation together. None: the claim is lost, or a later reading is known."""
    case = case_of(adapter, operation, reading)
    if operation.kind == OperationKind.SAVE_IMAGE:
        judgement = judge_image(reading.image, machine_gone=is_gone(operation))
    else:
        judgement = judge(case, reading.machine) if operation.instance or reading.machine else UNMOVED
        if not show(adapter, operation, reading, judgement):
            put_off(operation)
            return None
    ended = {Verdict.PROVED: prove, Verdict.FAILED: give_word}.get(judgement.verdict)
    if ended is not None:
        ended(operation, judgement, reading)
        return None
    return judgement if go_on(operation, judgement, reading, case) else None


def case_of(adapter: Provider, operation: Operation, reading: Reading) -> Case:
    absent = reading.machine is None and operation.instance is not None
    return Case(
        kind=operation.kind,
        sent_at=operation.sent_at or operation.requested_at,
        read_at=reading.at,
        accepted=not operation.uncertain,
        started_before=operation.started_before,
        moved=operation.moved_at is not None,
        ever_seen=operation.instance is not None and not operation.instance.is_unseen,
        # One, and never more, while the provider's silence means nothing.
        absent_reads=(operation.absent_reads + 1 if believed(operation) else 1) if absent else 0,
        absent_since=(operation.absent_since or reading.at) if absent else None,
        stop_bills_compute=Part.COMPUTE in adapter.semantics.billed_when_stopped,
    )


def is_gone(operation: Operation) -> bool:
    return operation.instance is not None and operation.instance.gone_at is not None


def believed(operation: Operation) -> bool:
    """Whether that the machine is missing says anything: not to a key that has never shown it, nor while the list is in doubt."""
    machine = Instance.objects.select_related("account").get(operations=operation)
    in_doubt = machine.doubted_since or machine.account.doubted_since
    return in_doubt is None and may_deny(machine.account, machine)


def show(adapter: Provider, operation: Operation, reading: Reading, judgement: Judgement) -> bool:
    """Brings the machine's row up to date. False: what was read is older than what is known already."""
    machine = reading.machine
    if machine is None:
        gone = operation.instance if judgement.word == "gone" else None
        return gone is None or apply_absence(instance=gone, now=reading.at) is not None
    instance = operation.instance or found(operation, machine, at=reading.at)
    shown = apply_reading(instance=instance, machine=machine, rule_version=adapter.rule_version, now=reading.at)
    return shown is not None


def found(operation: Operation, machine: ProviderInstance, *, at: datetime) -> Instance:
    """The machine whose answer was lost: ours by its token."""
    instance = name_machine(account=operation.account, ref=machine.ref, name=machine.name, now=at)
    adopt(operation, instance)
    named = {"instance": instance, "result_id": machine.ref.external_id, "result_region": machine.ref.region}
    named |= FORGOTTEN
    if change(operation, uncertain=False, **named):
        note(operation, "found", at=at, detail=machine.ref.external_id)
    return instance


def prove(operation: Operation, judgement: Judgement, reading: Reading) -> None:
    now = timezone.now()
    values = {"state": OperationState.PROVED, "proved_at": now, "proof": judgement.word, "uncertain": False}
    if change(operation, **values, **seen(reading), **NO_ERROR, claimed_until=None):
        note(operation, "proved", at=now)
        audit(operation, "proved", new={"proof": judgement.word})
        if operation.instance and reading.image:
            carry_environment(machine=operation.instance, image=reading.image, since=operation.requested_at)


def give_word(operation: Operation, judgement: Judgement, reading: Reading) -> None:
    """It ended as what cannot become true any more, and the provider itself shows so."""
    reason = reading.machine.state_reason if reading.machine else ""
    if change(operation, **seen(reading)):
        fail(operation, judgement.word, reason, at=timezone.now())


NO_ERROR = {"error_kind": "", "error_detail": "", "error_at": None, "failed_reads": 0}


def go_on(operation: Operation, judgement: Judgement, reading: Reading, case: Case) -> bool:
    """Not the end: it is looked at again. False: the claim is lost."""
    now = timezone.now()
    before = (operation.seen_state, operation.seen_billing, operation.state)
    moved = judgement is MOVING and reading.machine is not None
    values = {
        "state": OperationState.VERIFYING,
        "absent_reads": case.absent_reads,
        "absent_since": case.absent_since,
        "moved_at": (operation.moved_at or now) if moved and changes_state(operation, reading) else operation.moved_at,
        "next_at": now + until_next_read(since_sent(operation, now)),
        **seen(reading),
        **NO_ERROR,
    }
    if case.absent_reads and not believed(operation):
        values |= {"error_kind": "doubted", "error_at": now}
    if not change(operation, **values):
        return False
    told_of(operation, before, reading, at=now)
    return True


def changes_state(operation: Operation, reading: Reading) -> bool:
    return reading.machine is not None and reading.machine.state != operation.state_before


def told_of(operation: Operation, before: tuple[str, str, str], reading: Reading, *, at: datetime) -> None:
    """Events for what is new; a reading that shows the same again makes none."""
    if before[2] != OperationState.VERIFYING:
        note(operation, "verifying", at=at)
    elif reading.machine is None and operation.absent_reads == 1:
        note(operation, "absent", at=at)
    elif (operation.seen_state, operation.seen_billing) != before[:2]:
        note(operation, "seen", at=at)


def seen(reading: Reading) -> dict[str, Any]:
    if reading.image is not None:
        named = {"result_id": reading.image.external_id, "result_region": reading.image.region}
        return {"seen_state": reading.image.state.value, "seen_at": reading.at, **named}
    if reading.machine is None:
        return {"seen_at": reading.at}
    machine = reading.machine
    return {"seen_state": machine.state.value, "seen_billing": machine.billing.value, "seen_at": reading.at}


def send_again(adapter: Provider, operation: Operation, judgement: Judgement) -> bool:
    """Accepted and forgotten, or never heard of: whether it is time to say it again, with the same token."""
    repeatable = operation.kind in REPEATABLE or (
        operation.kind == OperationKind.LAUNCH and operation.instance is None and keeps_token(adapter)
    )
    forgotten = is_forgotten(
        since_sent(operation, timezone.now()),
        settle_seconds=adapter.semantics.settle_seconds,
        attempts=operation.attempts,
        moving=judgement is MOVING,
    )
    if repeatable and forgotten and operation.absent_reads == 0:
        return True
    change(operation, claimed_until=None)
    return False


def not_read(operation: Operation, error: ProviderError) -> None:
    """What could not be read proves nothing, either way."""
    now, detail = timezone.now(), shown_text(operation.account, error)
    since = since_sent(operation, now)
    pause = until_next_read(since, operation.failed_reads)
    if isinstance(error, RateLimited):
        pause = asked_to_wait(error.retry_after, since, operation.failed_reads)
    values: Mapping[str, Any] = {
        "state": OperationState.VERIFYING,
        "failed_reads": operation.failed_reads + 1,
        "next_at": now + pause,
        "claimed_until": None,
        **told(error, detail, now),
    }
    first = not operation.failed_reads
    with transaction.atomic():
        if change(operation, **values) and first:
            note(operation, "read_failed", at=now, detail=detail, error_kind=error.kind)
        if isinstance(error, RateLimited) and error.retry_after is not None:
            postpone_account(operation.account_id, until=now + pause)


def put_off(operation: Operation) -> None:
    """A later reading is known already: another one settles it."""
    now = timezone.now()
    change(operation, next_at=now + until_next_read(since_sent(operation, now)), claimed_until=None)
