"""One step of an operation. Everything that may follow is in the rows: a worker that dies anywhere is followed by the next.

    requested ──send──► accepted ──read──► verifying ──read, as long as it takes──► proved
        │  └─ no usable answer ────────────────┘  └── nothing came of it: sent again    │
        └─ refused ► failed                            back again: verifying ◄──────────┘

Network calls happen outside any transaction. A call is announced in the row before it is made, and an announced call whose answer nobody
wrote down (`uncertain`) is never taken for made or for not made: readings decide.
"""

from __future__ import annotations

from django.utils import timezone

from fleet.inventory.adapters import open_adapter
from fleet.inventory.credentials import CredentialError
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.operations.claims import claim
from fleet.inventory.operations.journal import fail
from fleet.inventory.operations.models import Operation, OperationState
from fleet.inventory.operations.proving import not_read, verify
from fleet.inventory.operations.sending import send
from fleet.providers.base import Provider
from fleet.providers.errors import ProviderError


def drive(*, operation_id: int) -> bool:
    """Claims it and goes one step. False: it was not due, or somebody else has it."""
    operation = claim(operation_id=operation_id, now=timezone.now())
    if operation is None:
        return False
    advance(operation)
    return True


def advance(operation: Operation) -> None:
    """One step under the claim with which `operation` was loaded."""
    if operation.account.disconnected_at:
        fail(operation, "disconnected", "", at=timezone.now())
        return
    adapter = opened(operation)
    if adapter is None:
        return
    if operation.state == OperationState.REQUESTED and not operation.uncertain:
        send(adapter, operation)
    else:
        verify(adapter, operation)


def opened(operation: Operation) -> Provider | None:
    """None where the account's credentials cannot be used: what was not sent has failed, what was sent is not read for now."""
    try:
        return open_adapter(operation.account)
    except (ProviderError, CredentialError) as error:
        problem = as_provider_error(error, operation.account)
        if operation.attempts:
            not_read(operation, problem)
        else:
            fail(operation, problem.kind, shown_text(operation.account, problem), at=timezone.now())
        return None
