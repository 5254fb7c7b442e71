"""The call to the provider. What is about to be sent is written before; what came back decides between accepted, failed and not known."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.models import Instance
from fleet.inventory.operations.calls import Answer, call
from fleet.inventory.operations.journal import change, fail, note
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind, OperationState
from fleet.inventory.operations.orders import FORGOTTEN, without_script
from fleet.inventory.operations.timing import FIRST, asked_to_wait
from fleet.inventory.operations.withholding import objection, withhold
from fleet.inventory.probe import name_machine
from fleet.providers.base import Provider, Ref
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    PartialCreate,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    WrongState,
)

# The provider said no, and nothing happened. Everything else leaves the outcome open.
REFUSALS = (AuthFailed, ScopeMissing, WrongState, NoCapacity, QuotaOrFunds, Invalid)


def send(adapter: Provider, operation: Operation) -> None:
    """One call, if it still may be made. Nothing of it is tried again here."""
    was_uncertain, now = operation.uncertain, timezone.now()
    if (refusal := objection(operation, now=now)) is not None:
        withhold(operation, refusal, at=now)
        return
    if not announce_call(operation, at=timezone.now()):
        return
    try:
        answer = call(adapter, operation)
    except Exception as error:  # noqa: BLE001 - whatever breaks in the call, its outcome is written down
        answered_badly(operation, as_provider_error(error, operation.account), was_uncertain=was_uncertain)
        return
    accepted(operation, answer, at=timezone.now())


@transaction.atomic
def announce_call(operation: Operation, *, at: datetime) -> bool:
    """From here on nobody can say that nothing was sent. False: the claim is lost."""
    again = operation.attempts > 0
    if not change(operation, sent_at=at, attempts=operation.attempts + 1, uncertain=True, moved_at=None):
        return False
    note(operation, "sent_again" if again else "sent", at=at)
    return True


@transaction.atomic
def accepted(operation: Operation, answer: Answer, *, at: datetime) -> bool:
    """A machine that was named is in the list, whatever became of the operation meanwhile."""
    values = {
        "state": OperationState.ACCEPTED if operation.state == OperationState.REQUESTED else operation.state,
        "accepted_at": operation.accepted_at or at,
        "uncertain": False,
        "next_at": at + FIRST,
        "claimed_until": None,
        **results(operation, answer, at=at),
    }
    if not change(operation, **values):
        return False
    note(operation, "accepted", at=at)
    return True


def results(operation: Operation, answer: Answer, *, at: datetime) -> dict[str, object]:
    if not answer.external_id:
        return {}
    named: dict[str, object] = {"result_id": answer.external_id, "result_region": answer.region}
    if operation.kind == OperationKind.LAUNCH:
        named |= {"instance": adopted(operation, Ref(answer.external_id, answer.region), at=at), **FORGOTTEN}
    return named


def adopted(operation: Operation, ref: Ref, *, at: datetime) -> Instance:
    """The machine of a launch, with what was said of it when it was ordered. What people said of it since stays."""
    name = operation.machine_name or ref.external_id
    instance = name_machine(account=operation.account, ref=ref, name=name, now=at)
    return adopt(operation, instance)


def adopt(operation: Operation, instance: Instance) -> Instance:
    instance.managed = True
    instance.project_id = instance.project_id or operation.project_id
    instance.owner_id = instance.owner_id or operation.requested_by_id
    Instance.objects.filter(pk=instance.pk).update(managed=True, project=instance.project_id, owner=instance.owner_id)
    return instance


def answered_badly(operation: Operation, error: ProviderError, *, was_uncertain: bool) -> None:
    at, detail = timezone.now(), without_script(operation, shown_text(operation.account, error))
    with transaction.atomic():
        if isinstance(error, PartialCreate):
            partial(operation, error, detail, at=at)
        elif isinstance(error, RateLimited):
            wait(operation, error, detail, at=at, uncertain=was_uncertain)
        elif is_refusal(operation, error) and not was_uncertain and operation.accepted_at is None:
            # After an open or an accepted call a refusal is none: what was sent before may have been taken.
            if change(operation, uncertain=False):
                fail(operation, error.kind, detail, at=at)
        else:
            unanswered(operation, error, detail, at=at)


def is_refusal(operation: Operation, error: ProviderError) -> bool:
    """A machine that is not found may be gone, which for a stop is an end; an offer that is not found is a refusal."""
    return isinstance(error, REFUSALS) or (isinstance(error, NotFound) and operation.kind == OperationKind.LAUNCH)


def unanswered(operation: Operation, error: ProviderError, detail: str, *, at: datetime) -> None:
    """Not a failure: it may have been done. Readings will show."""
    values = {
        "state": OperationState.VERIFYING,
        "next_at": at + FIRST,
        "claimed_until": None,
        **told(error, detail, at),
    }
    if change(operation, **values):
        note(operation, "unanswered", at=at, detail=detail, error_kind=error.kind)


def partial(operation: Operation, error: PartialCreate, detail: str, *, at: datetime) -> None:
    answer = Answer(error.ref.external_id, error.ref.region)
    values = {
        "state": OperationState.VERIFYING,
        "uncertain": False,
        "next_at": at + FIRST,
        "claimed_until": None,
        **told(error, detail, at),
        **results(operation, answer, at=at),
    }
    if change(operation, **values):
        note(operation, "partial", at=at, detail=detail, error_kind=error.kind)


def wait(operation: Operation, error: RateLimited, detail: str, *, at: datetime, uncertain: bool) -> None:
    """Nothing was done. The others of the account would be told the same, so they wait as well."""
    pause = asked_to_wait(error.retry_after, at - operation.requested_at, operation.failed_reads)
    values = {
        "uncertain": uncertain,
        "failed_reads": operation.failed_reads + 1,
        "next_at": at + pause,
        "claimed_until": None,
        **told(error, detail, at),
    }
    first = not operation.failed_reads
    if change(operation, **values) and first:
        note(operation, "waiting", at=at, detail=detail, error_kind=error.kind)
    if error.retry_after is not None:
        postpone_account(operation.account_id, until=at + pause)


def postpone_account(account_id: int, *, until: datetime) -> None:
    waiting = Operation.objects.filter(account=account_id, state__in=OPEN_STATES, claimed_until=None, next_at__lt=until)
    waiting.update(next_at=until)


def told(error: ProviderError, detail: str, at: datetime) -> dict[str, object]:
    return {"error_kind": error.kind, "error_detail": detail, "error_at": at}


def since_sent(operation: Operation, now: datetime) -> timedelta:
    return now - (operation.sent_at or operation.requested_at)
