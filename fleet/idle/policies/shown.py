"""Policies as their page shows them: what each says, and what it covers now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet

from fleet.idle.policies.covering import JudgedBy, judged_by, stops
from fleet.idle.policies.models import IdleAction, IdlePolicy
from fleet.idle.policies.words import more_words, sentence
from fleet.idle.shutdown.models import IdleStop, IdleStopStage
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance
from fleet.providers.base import Capability, InstanceState
from fleet.teams.models import Team

RELATED = ("team", "project", "account", "delete_consent_by")
LATELY = timedelta(days=30)
NEEDED = {IdleAction.STOP: Capability.STOP, IdleAction.TERMINATE: Capability.TERMINATE}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """`machines`: those that it is the first to cover. `beyond`: of them, those that it cannot act on, though it would. `stops`: of 30 days."""

    policy: IdlePolicy
    sentence: str
    more: list[str]
    machines: int
    beyond: int
    stops: int

    @property
    def acts(self) -> bool:
        return stops(self.policy)


@dataclass(frozen=True, slots=True)
class Board:
    """All policies of a team, in their order. `uncovered`: machines that none of them covers."""

    lines: Sequence[PolicyLine]
    uncovered: int

    @property
    def acting(self) -> int:
        return sum(line.acts for line in self.lines)


def board_of(team: Team, now: datetime) -> Board:
    policies = list(policies_of(team))
    machines = list(rented(team))
    judged = judged_by(machines)
    covered = Counter(found.policy.pk for found in judged.values() if found.policy)
    beyond = Counter(pk for pk in _beyond(machines, judged))
    stopped = _stops(policies, now)
    lines = [
        PolicyLine(
            policy,
            sentence(policy),
            more_words(policy),
            covered[policy.pk],
            beyond[policy.pk],
            stopped.get(policy.pk, 0),
        )
        for policy in policies
    ]
    return Board(lines, sum(found.policy is None for found in judged.values()))


def policies_of(team: Team) -> Iterable[IdlePolicy]:
    rows = IdlePolicy.objects.filter(team=team, removed_at=None).select_related(*RELATED)
    return rows.prefetch_related("excluded").order_by("position", "pk")


def rented(team: Team) -> QuerySet[Instance]:
    rows = Instance.objects.filter(team=team, gone_at=None).exclude(state=InstanceState.TERMINATED)
    return rows.select_related("account").defer("account__credentials").order_by("name", "pk")


def is_beyond(machine: Instance, policy: IdlePolicy) -> bool:
    """Whether nobody can carry out on it what the policy says."""
    needed = NEEDED.get(IdleAction(policy.action))
    if needed is None:
        return False
    account = machine.account
    return not machine.managed or account.monitor_only or bool(account.disconnected_at) or not can(account, needed)


def _beyond(machines: Iterable[Instance], judged: dict[int, JudgedBy]) -> Iterable[int]:
    for machine in machines:
        policy = judged[machine.pk].policy
        if policy is not None and is_beyond(machine, policy):
            yield policy.pk


def _stops(policies: Iterable[IdlePolicy], now: datetime) -> dict[int, int]:
    rows = IdleStop.objects.filter(
        policy__in=[policy.pk for policy in policies], stage=IdleStopStage.STOPPED, began_at__gte=now - LATELY
    )
    return dict(rows.values("policy").annotate(n=Count("pk")).values_list("policy", "n"))
