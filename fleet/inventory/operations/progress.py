"""How far an operation is, as a line of four steps: asked for, accepted, verifying, proved or failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from fleet.formats import duration_text, money_text
from fleet.inventory.failures import in_readers_language
from fleet.inventory.operations.act_words import seen_words, verb
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationState
from fleet.inventory.operations.words import PROOFS, failure_words
from fleet.teams.models import Team

# How long after its end an operation still stands on top of its machine's page.
RECENT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Step:
    """`at`: done, now, todo or failed."""

    at: str
    name: str
    moment: datetime | None = None
    detail: str = ""

    @property
    def spoken(self) -> str:
        words = {
            "done": pgettext("step", "done"),
            "now": pgettext("step", "now"),
            "todo": pgettext("step", "to come"),
            "failed": pgettext("step", "failed"),
        }
        return words[self.at]


@dataclass(frozen=True)
class Progress:
    """`operation.instance` is read."""

    operation: Operation
    now: datetime

    @property
    def verb(self) -> str:
        return verb(self.operation.kind)

    @property
    def title(self) -> str:
        return _("%(verb)s %(name)s") % {"verb": self.verb, "name": self.operation.machine_name}

    @property
    def is_open(self) -> bool:
        return self.operation.is_open

    @cached_property
    def steps(self) -> list[Step]:
        operation = self.operation
        asked = Step("done", _("Asked for"), operation.requested_at, operation.requested_label)
        return [asked, self._accepted(), self._verifying(), self._end()]

    def _accepted(self) -> Step:
        operation, name = self.operation, _("Accepted")
        if operation.accepted_at:
            return Step("done", name, operation.accepted_at, _("by the provider, which proves nothing yet"))
        if operation.state == OperationState.REQUESTED:
            return Step("now", name, None, self._waits())
        if operation.state == OperationState.FAILED:
            return Step("failed", name, None, self._trouble)
        return Step("done", name, operation.sent_at, _("no usable answer; readings decide"))

    def _waits(self) -> str:
        return self._trouble or (_("sent, no answer yet") if self.operation.attempts else _("not sent yet"))

    def _verifying(self) -> Step:
        operation, name = self.operation, _("Verifying")
        if operation.state == OperationState.REQUESTED:
            return Step("todo", name)
        if operation.state == OperationState.FAILED:
            return Step("failed" if operation.accepted_at else "todo", name, operation.seen_at, self.seen_words)
        at = "done" if operation.state == OperationState.PROVED else "now"
        words = (self.seen_words, self._trouble if at == "now" else "")
        return Step(at, name, operation.seen_at, "; ".join(filter(None, words)))

    def _end(self) -> Step:
        operation = self.operation
        if operation.state == OperationState.PROVED:
            return Step("done", _("Proved"), operation.proved_at, self.proof_words)
        if operation.state == OperationState.FAILED:
            return Step("failed", _("Failed"), operation.failed_at, failure_words(operation.error_kind))
        return Step("todo", _("Proved"), None, _("when a reading shows it"))

    @property
    def proof_words(self) -> str:
        return str(PROOFS.get(self.operation.proof, ""))

    @property
    def _trouble(self) -> str:
        """The last error, in the reader's language where it is ours."""
        operation = self.operation
        if not operation.error_kind:
            return ""
        return in_readers_language(operation.error_detail) or failure_words(operation.error_kind)

    @property
    def seen_words(self) -> str:
        """What the last reading showed."""
        operation = self.operation
        if not operation.seen_state:
            return _("not read yet") if operation.is_open else ""
        return seen_words(operation.kind, operation.seen_state, operation.seen_billing)

    @property
    def burnt(self) -> Decimal | None:
        return self.operation.burnt(self.now)

    @property
    def money_words(self) -> str:
        """What it has cost since it was asked for."""
        if self.burnt is None:
            return _("price not known")
        amount = money_text(self.burnt, self.operation.currency)
        return _("%(money)s since it was asked for") % {"money": amount} if self.is_open else amount

    @property
    def lasted(self) -> str:
        end = self.operation.ended_at or self.now
        return duration_text(max((end - self.operation.requested_at).total_seconds(), 0))

    @property
    def end_words(self) -> str:
        """At the right of the line: money and time."""
        return ", ".join(self._end_parts())

    def _end_parts(self) -> Iterator[str]:
        yield self.lasted
        yield self.money_words


def newest_of(instance_id: int, *, now: datetime) -> Progress | None:
    """The operation that a machine's page shows on top: the one under way, else one that ended just now."""
    newest = (
        Operation.objects.filter(instance=instance_id)
        .select_related("instance", "account")
        .defer("account__credentials")
        .order_by("-requested_at")
        .first()
    )
    if newest is None or (newest.ended_at and now - newest.ended_at > RECENT):
        return None
    return Progress(newest, now)


def open_operations(team: Team) -> dict[int, Operation]:
    """By machine: each has one at most."""
    rows = Operation.objects.filter(team=team, state__in=OPEN_STATES, instance__isnull=False)
    return {operation.instance_id: operation for operation in rows if operation.instance_id}
