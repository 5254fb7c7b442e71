"""Which machines that a complete list does not name are gone, and which only look like it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Min

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind
from fleet.providers.base import InstanceState

# Machines from which losing more than half of an account at once is believed by nobody.
LOST_AT_ONCE = 3


def is_doubtful(*, listed: int, missing: int, known: int) -> bool:
    """Of `known` machines a complete list of `listed` rows leaves out `missing`: whether that is the list's fault, most likely."""
    return missing > 0 and (not listed or (missing >= LOST_AT_ONCE and 2 * missing > known))


@dataclass(frozen=True, slots=True)
class Missing:
    """Machines that a complete list did not name, by what is thought of that."""

    expected: tuple[Instance, ...]
    doubted: tuple[Instance, ...]


def sort_missing(account: ProviderAccount, missing: Collection[Instance], *, listed: int, still_there: int) -> Missing:
    """`still_there`: machines that were known before and are in the list of `listed` rows."""
    if not missing:
        return Missing((), ())
    going = leaving(account, missing)
    staying = [instance for instance in missing if instance.pk not in going]
    doubtful = is_doubtful(listed=listed, missing=len(staying), known=still_there + len(staying))
    doubted = [row for row in staying if doubtful or row.doubted_since or not may_deny(account, row)]
    names = {instance.pk for instance in doubted}
    return Missing(tuple(row for row in missing if row.pk not in names), tuple(doubted))


def leaving(account: ProviderAccount, missing: Collection[Instance]) -> set[int | None]:
    """Machines whose absence surprises nobody: they were seen on their way out, or somebody here asked for their end."""
    going = {instance.pk for instance in missing if instance.state == InstanceState.TERMINATING}
    asked = Operation.objects.filter(account=account, kind=OperationKind.TERMINATE, state__in=OPEN_STATES)
    return {*going, *asked.values_list("instance_id", flat=True)}


def may_deny(account: ProviderAccount, instance: Instance) -> bool:
    """Whether the present key has ever shown this machine: a key of another project knows none of the machines either."""
    return account.keyed_at is None or instance.last_seen_at > account.keyed_at


def settle_account(account: ProviderAccount) -> None:
    """Since when the account's list is doubted; NULL when no machine of it is any more."""
    doubted = Instance.objects.filter(account=account, gone_at=None).aggregate(since=Min("doubted_since"))
    ProviderAccount.objects.filter(pk=account.pk).update(doubted_since=doubted["since"])
