"""What may be asked of a machine now: what each act means, and why some cannot be begun. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.formats import duration_text
from fleet.inventory.adapters import adapter_class
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Hold, Instance
from fleet.inventory.operations import act_words
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind, OperationState
from fleet.inventory.operations.permits import (
    ASKS_HOLDS,
    ENDS,
    held_words,
    refuse_account,
    refuse_busy,
    refuse_untouchable,
)
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.operations.words import Consequences, consequences
from fleet.inventory.plans.gate import blocked_starts
from fleet.providers.base import InstanceState
from fleet.providers.errors import Invalid

ORDER = (
    OperationKind.START,
    OperationKind.STOP,
    OperationKind.REBOOT,
    OperationKind.SAVE_IMAGE,
    OperationKind.TERMINATE,
)
# Acts that make sense in a state; of other states nobody can tell, so that all are offered.
SENSIBLE: Mapping[str, frozenset[OperationKind]] = {
    InstanceState.RUNNING: frozenset(ORDER) - {OperationKind.START},
    InstanceState.PROVISIONING: ENDS,
    InstanceState.STARTING: ENDS,
    InstanceState.STOPPING: frozenset({OperationKind.TERMINATE}),
    InstanceState.STOPPED: frozenset({OperationKind.START, OperationKind.SAVE_IMAGE, OperationKind.TERMINATE}),
    InstanceState.TERMINATING: frozenset(),
    InstanceState.TERMINATED: frozenset(),
}
REMEMBERED = timedelta(days=60)
MOST_REMEMBERED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One act on one machine. `refusal`: why it cannot be begun; `held`: the hold or the launch block that an admin would have to override."""

    instance: Instance
    kind: OperationKind
    told: Consequences
    refusal: Refused | None = None
    held: str = ""
    replaces: str = ""
    takes: str = ""

    @property
    def is_open_to(self) -> bool:
        """Whether anybody may go on with it; a hold still asks for an admin."""
        return self.refusal is None

    @property
    def verb(self) -> str:
        return act_words.verb(self.kind)

    @property
    def question(self) -> str:
        return act_words.question(self.kind, self.instance.name)

    @property
    def about(self) -> str:
        return str(act_words.ABOUT[self.kind])

    @property
    def button(self) -> str:
        return act_words.do_it(self.kind, loses=self.told.must_confirm)

    @property
    def says(self) -> list[str]:
        return list(act_words.says(self.told))

    @property
    def price_words(self) -> str:
        return act_words.price_words(self.told)

    @property
    def is_end(self) -> bool:
        return self.kind in ENDS


@dataclass(frozen=True)
class Situation:
    """What is the same for every act on the machines: read once, however many there are."""

    holds: Mapping[int, Hold]
    blocked: Mapping[int, str]
    under_way: Mapping[int, Operation]
    took_seconds: Mapping[tuple[int, str], Sequence[float]]

    @classmethod
    def of(cls, instances: Iterable[Instance], *, now: datetime) -> Situation:
        rows = list(instances)
        ids = [row.pk for row in rows]
        holds = holds_in_force(now=now).filter(instance__in=ids).select_related("owner").order_by("-started_at")
        under_way = Operation.objects.filter(instance__in=ids, state__in=OPEN_STATES)
        return cls(
            holds={hold.instance_id: hold for hold in holds},
            blocked=blocked_starts(rows),
            under_way={operation.instance_id: operation for operation in under_way if operation.instance_id},
            took_seconds=took_seconds({row.account_id for row in rows}, now=now),
        )


def took_seconds(account_ids: Iterable[int], *, now: datetime) -> dict[tuple[int, str], list[float]]:
    """How long proved operations took lately, by account and kind."""
    proved = Operation.objects.filter(
        account__in=account_ids, state=OperationState.PROVED, requested_at__gt=now - REMEMBERED
    ).order_by("-requested_at")
    found: dict[tuple[int, str], list[float]] = {}
    for account, kind, begun, ended in proved.values_list("account_id", "kind", "requested_at", "proved_at")[
        :MOST_REMEMBERED
    ]:
        if ended is not None:
            found.setdefault((account, kind), []).append((ended - begun).total_seconds())
    return found


def sensible(instance: Instance) -> list[OperationKind]:
    return [kind for kind in ORDER if kind in SENSIBLE.get(instance.state, ORDER)]


def preview(instance: Instance, kind: OperationKind, situation: Situation) -> Preview:
    """`instance.account` is read. Raises Invalid where the account's adapter is not installed."""
    under_way = situation.under_way.get(instance.pk)
    return Preview(
        instance=instance,
        kind=kind,
        told=consequences(instance, kind),
        refusal=refusal_of(instance, kind, under_way),
        held=held_by(instance, kind, situation),
        replaces=under_way.get_kind_display() if under_way else "",
        takes=takes_words(instance, situation.took_seconds.get((instance.account_id, kind), ())),
    )


def held_by(instance: Instance, kind: OperationKind, situation: Situation) -> str:
    """Empty where nothing does."""
    if kind is OperationKind.START:
        return situation.blocked.get(instance.pk, "")
    hold = situation.holds.get(instance.pk)
    return held_words(instance, hold) if hold and kind in ASKS_HOLDS else ""


def previews(instance: Instance, *, now: datetime) -> list[Preview]:
    """Of every act that makes sense now; none where the account's adapter is not installed."""
    situation = Situation.of([instance], now=now)
    try:
        return [preview(instance, kind, situation) for kind in sensible(instance)]
    except Invalid:
        return []


def refusal_of(instance: Instance, kind: OperationKind, under_way: Operation | None) -> Refused | None:
    """Everything but holds and losses, about which whoever asks can do something."""
    try:
        refuse_account(instance.account, kind)
        refuse_untouchable(instance)
        if under_way is not None:
            refuse_busy(instance, kind, under_way)
    except Refused as refusal:
        return refusal
    return None


def takes_words(instance: Instance, earlier: Sequence[float]) -> str:
    """How long it takes until a reading proves it: as it was here before, else as the provider documents."""
    if earlier:
        said = ngettext(
            "About %(time)s, as the one before took.", "About %(time)s, as the %(n)d before took.", len(earlier)
        )
        return said % {"time": duration_text(median(earlier)), "n": len(earlier)}
    settle = adapter_class(instance.account.kind).semantics.settle_seconds
    return _("Readings should show it within %(time)s; if not, they go on until one does.") % {
        "time": duration_text(settle)
    }
