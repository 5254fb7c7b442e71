"""Why an act is not even begun. The text says what is wrong and what to do; `field` names the argument that would change it.

Refused
├── MonitorOnly       the account may only be looked at
├── Paused            the account is not read at present
├── Unsupported       this provider has no such act
├── Unmanaged         nobody registered the machine
├── Gone              the machine is no more
│   └── Disconnected  its account is
├── Held              a hold keeps the machine, and nobody said why it should not
├── LaunchBlocked     a budget lets nothing be launched or started, and nobody said why it should not count
├── NotAdmin          only an admin overrides a hold or a block
├── InUse             what was idle when it was asked for is in use again
├── UseUnknown        nobody knows any more whether it still is
├── LosesData         it destroys data, and nobody said that this is meant
├── Unsealable        there is no key to encrypt a startup script with
├── OperationOpen     another operation is under way: `operation`
└── KeyTaken          the idempotency key belongs to another request
"""

from __future__ import annotations

from typing import ClassVar

from fleet.inventory.operations.models import Operation


class Refused(Exception):
    code: ClassVar[str] = "refused"
    field: ClassVar[str | None] = None


class MonitorOnly(Refused):
    code = "monitor_only"


class Paused(Refused):
    code = "paused"


class Unsupported(Refused):
    code = "unsupported"


class Unmanaged(Refused):
    code = "unmanaged"


class Gone(Refused):
    code = "gone"


class Disconnected(Gone):
    code = "disconnected"


class Held(Refused):
    code, field = "held", "override_reason"


class LaunchBlocked(Refused):
    code, field = "launch_blocked", "override_reason"


class NotAdmin(Refused):
    code, field = "not_admin", "override_reason"


class InUse(Refused):
    code = "in_use"


class UseUnknown(Refused):
    code = "use_unknown"


class LosesData(Refused):
    code, field = "loses_data", "accept_loss"


class Unsealable(Refused):
    code = "unsealable"


class OperationOpen(Refused):
    code = "operation_open"

    def __init__(self, text: str, operation: Operation) -> None:
        super().__init__(text)
        self.operation = operation


class KeyTaken(Refused):
    code, field = "key_taken", "idempotency_key"
