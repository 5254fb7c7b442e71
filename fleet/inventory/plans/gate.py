"""Whether money may be spent on one more machine: what is asked before a launch or a start is begun, and again before it is sent."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.refusals import LaunchBlocked, NotAdmin
from fleet.inventory.plans.models import LaunchBlock
from fleet.inventory.plans.reasons import reason_text
from fleet.inventory.plans.whose import Whose, whose_of, whose_operation
from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role

# What makes a machine cost more than before.
SPENDS = frozenset({OperationKind.LAUNCH, OperationKind.START})


def blocks_in_force(team_id: int) -> QuerySet[LaunchBlock]:
    rows = LaunchBlock.objects.filter(team=team_id, lifted_at=None)
    return rows.select_related("account", "project", "owner").order_by("created_at", "pk")


def covering(team_id: int, whose: Whose) -> QuerySet[LaunchBlock]:
    """Blocks of a launch for that account, project and person. A launch of no project or of nobody is covered by those of all."""
    return blocks_in_force(team_id).filter(
        Q(account=None) | Q(account=whose.account_id),
        Q(project=None) | Q(project=whose.project_id),
        Q(owner=None) | Q(owner=whose.owner_id),
    )


def blocks_of(operation: Operation) -> QuerySet[LaunchBlock]:
    return covering(operation.team_id, whose_operation(operation))


def refuse_blocked(operation: Operation, *, actor: Actor) -> None:
    """Of an operation that is not written yet. Raises LaunchBlocked, or NotAdmin where somebody else gave a reason.

    A token's scope was looked at where it was read; it is nobody's membership.
    """
    if operation.kind not in SPENDS:
        return
    block = blocks_of(operation).first()
    if block is None:
        return
    if not operation.override_reason:
        raise LaunchBlocked(blocked_words(block))
    is_admin = Membership.objects.filter(user=actor.user, team=operation.team_id, role=Role.ADMIN)
    if actor.user is not None and not is_admin.exists():
        raise NotAdmin(_("Only an admin of the team may launch against a block."))


def newly_blocked(operation: Operation) -> bool:
    """Before it is sent: a reason that was given overrides the blocks of its day, none that came later."""
    if operation.kind not in SPENDS:
        return False
    blocks = blocks_of(operation)
    if operation.override_reason:
        blocks = blocks.filter(created_at__gt=operation.requested_at)
    return blocks.exists()


def blocked_words(block: LaunchBlock) -> str:
    """What is blocked, why, and what to do about it."""
    return _("%(what)s may not be launched or started: %(reason)s. %(remedy)s") % {
        "what": covers_words(block),
        "reason": reason_text(block),
        "remedy": remedy_words(),
    }


def remedy_words() -> str:
    return _("Raise the budget, wait for its next period, or let an admin give a reason why it does not count.")


def covers_words(block: LaunchBlock) -> str:
    """Whose machines: "Machines of the project Vision"."""
    named = [
        (block.account, _("Machines of the account %(name)s")),
        (block.project, _("Machines of the project %(name)s")),
    ]
    words = [text % {"name": row.name} for row, text in named if row is not None]
    if block.owner is not None:
        words.append(_("Machines of %(name)s") % {"name": block.owner.display_name})
    return ", ".join(words) or _("Machines of this team")


def blocked_starts(instances: Iterable[Instance]) -> dict[int, str]:
    """Of the machines that a block covers, the words of the oldest. One query for each team, and those of whose they are."""
    rows = list(instances)
    whose = whose_of(rows)
    blocks = {team: list(blocks_in_force(team)) for team in {row.team_id for row in rows}}
    found = {
        row.pk: next((block for block in blocks[row.team_id] if covers(block, whose[row.pk])), None) for row in rows
    }
    return {pk: blocked_words(block) for pk, block in found.items() if block is not None}


def covers(block: LaunchBlock, whose: Whose) -> bool:
    pairs = (
        (block.account_id, whose.account_id),
        (block.project_id, whose.project_id),
        (block.owner_id, whose.owner_id),
    )
    return all(wanted is None or wanted == its for wanted, its in pairs)


def blocks_for_page(team_id: int, *, account_ids: Iterable[int] | None = None) -> list[tuple[LaunchBlock, str, str]]:
    """With what they cover and why, before anybody fills in a form; `account_ids`: only what can matter for those."""
    rows = blocks_in_force(team_id)
    if account_ids is not None:
        rows = rows.filter(Q(account=None) | Q(account__in=account_ids))
    return [(block, covers_words(block), reason_text(block)) for block in rows]
