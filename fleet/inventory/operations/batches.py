"""One act on many machines, asked for on a page: who can, who cannot and why, and what it changes in money."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from fleet.inventory.models import Instance
from fleet.inventory.operations.bulk import request_act
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.preview import Preview, Situation, preview, sensible
from fleet.inventory.operations.refusals import Refused
from fleet.teams.audit import Actor
from fleet.teams.models import Team

MAX_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Plan:
    kind: OperationKind
    possible: list[Preview]
    impossible: list[tuple[Preview, str]]

    @property
    def loses(self) -> bool:
        return any(told.told.must_confirm for told in self.possible)

    @property
    def saved(self) -> dict[str, Decimal]:
        """An hour, by currency, of those whose saving is known."""
        sums: dict[str, Decimal] = {}
        for told in self.possible:
            if told.told.saved is not None:
                sums[told.told.currency] = sums.get(told.told.currency, Decimal(0)) + told.told.saved
        return sums

    @property
    def costs(self) -> dict[str, Decimal]:
        """What an hour costs more: of a start."""
        return {currency: -saved for currency, saved in self.saved.items() if saved < 0}

    @property
    def unknown(self) -> int:
        return sum(told.told.saved is None for told in self.possible)


def plan_of(instances: Iterable[Instance], kind: OperationKind, *, now: datetime) -> Plan:
    rows = list(instances)
    situation = Situation.of(rows, now=now)
    found = [preview(row, kind, situation) for row in rows]
    reasons = [(told, why_left_out(told)) for told in found]
    return Plan(kind, [told for told, why in reasons if not why], [(told, why) for told, why in reasons if why])


def why_left_out(told: Preview) -> str:
    """Empty for what can be begun. A hold is overridden on the machine's own page only, one at a time."""
    if told.refusal is not None:
        return str(told.refusal)
    if told.kind not in sensible(told.instance):
        return _("It is %(state)s.") % {"state": told.instance.get_state_display()}
    return told.held


def act_on_many(
    *, actor: Actor, instances: Iterable[Instance], kind: OperationKind, batch: str, accept_loss: bool
) -> dict[int, str]:
    """Each is begun or refused by itself. Returns why, of those that were refused. The same batch begins nothing twice."""
    more = {"accept_loss": True} if accept_loss else {}
    refused: dict[int, str] = {}
    for instance in instances:
        try:
            request_act(actor=actor, instance=instance, kind=kind, idempotency_key=key_of(batch, instance.pk), **more)
        except Refused as refusal:
            refused[instance.pk] = str(refusal)
    return refused


def key_of(batch: str, pk: int) -> str:
    return f"batch:{batch}:{pk}"


def operations_of(team: Team, batch: str) -> QuerySet[Operation]:
    rows = Operation.objects.filter(team=team, idempotency_key__startswith=f"batch:{batch}:")
    return rows.select_related("instance", "account").defer("account__credentials").order_by("instance__name", "pk")
