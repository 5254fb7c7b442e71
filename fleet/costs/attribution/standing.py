"""What rules do now, what they would have made of the last 30 days, and what a rule that is not made yet would change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from fleet.costs.attribution.desired import MANUAL, Attribution, Machine, Rule, desired_attribution
from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import AttributionRule
from fleet.costs.attribution.money import Amounts, Whose, added
from fleet.costs.attribution.reading import Standing, machines_of
from fleet.costs.attribution.rules import RuleSaid, rules_of
from fleet.costs.spend.days import ONE_DAY, day_of
from fleet.costs.spend.spend import By, spend
from fleet.inventory.models import Instance
from fleet.teams.models import Project, Team, User

LAST = timedelta(days=30)


@dataclass(slots=True)
class Tally:
    """Machines that are there now, and what they and those that are gone cost within LAST."""

    machines: int = 0
    cost: Amounts = field(default_factory=dict)

    def add(self, *, is_present: bool, cost: Mapping[str, Decimal]) -> None:
        self.machines += is_present
        self.cost = added((self.cost, cost))


@dataclass(slots=True)
class RuleStanding:
    """`left` and `archived`: its owner left the team, its project was archived since; it gives nothing to them any more."""

    rule: AttributionRule
    left: bool
    archived: bool
    tally: Tally = field(default_factory=Tally)


@dataclass(slots=True)
class Board:
    """The rules in their order. Of machines that no rule matched: those that people gave to somebody, and those of nobody."""

    rules: list[RuleStanding]
    by_hand: Tally = field(default_factory=Tally)
    nobody: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class Moved:
    machine: Machine
    before: Attribution
    after: Attribution


@dataclass(frozen=True, slots=True)
class Preview:
    """What changes hands from `hour` on. `matched`: machines that the rule would decide about."""

    hour: datetime
    matched: int
    moved: list[Moved]


@dataclass(frozen=True, slots=True)
class Names:
    """Of projects and people of a team, whoever left included where they are asked for."""

    projects: Mapping[int, str]
    people: Mapping[int, str]

    @classmethod
    def of(cls, team: Team, whose: Iterable[Whose] = ()) -> Names:
        owners = {owner for _project, owner in whose if owner is not None}
        people = User.objects.filter(pk__in=owners) | User.objects.filter(memberships__team=team)
        return cls(
            dict(Project.objects.filter(team=team).values_list("pk", "name")),
            {user.pk: user.display_name for user in people.distinct()},
        )

    def text(self, project: int | None, owner: int | None) -> str:
        """As in “Vision · Bob”; or that it is nobody's."""
        parts = (
            "" if project is None else self.projects.get(project, "?"),
            "" if owner is None else self.people.get(owner, "?"),
        )
        return " · ".join(part for part in parts if part) or _("nobody")


def board_of(team: Team, *, now: datetime) -> Board:
    """Two reads of the machines and one of their money, whatever the number of rules."""
    standing = Standing.of(team)
    rows = rules_of(team)
    board = Board([_standing(row, standing) for row in rows])
    costs = cost_by_machine(team, now=now)
    present = set(Instance.objects.filter(team=team, gone_at=None).values_list("pk", flat=True))
    asked = Instance.objects.filter(team=team, pk__in=present | set(costs))
    by_rule = {one.rule.pk: one.tally for one in board.rules}
    rules = [standing.rule(row) for row in rows]
    for machine in machines_of(asked, standing, now=now):
        found = desired_attribution(machine, rules)
        tally = by_rule.get(found.rule_id or 0) or (board.by_hand if found.source == MANUAL else board.nobody)
        tally.add(is_present=machine.pk in present, cost=costs.get(machine.pk, {}))
    return board


def _standing(row: AttributionRule, standing: Standing) -> RuleStanding:
    left = row.owner_id is not None and standing.member(row.owner_id) is None
    return RuleStanding(row, left, row.project_id is not None and standing.open_project(row.project_id) is None)


def cost_by_machine(team: Team, *, now: datetime) -> dict[int, Amounts]:
    end = day_of(now, ZoneInfo(team.time_zone)) + ONE_DAY
    found = spend(team=team, start=end - LAST, end=end, by=(By.MACHINE,))
    return {machine: dict(one.amounts) for (machine,), one in found.rows.items() if isinstance(machine, int)}


def unattributed(team: Team, *, now: datetime) -> tuple[Amounts, Amounts]:
    """What nobody was charged with within LAST: money, and (never taken off it) credits of nobody."""
    end = day_of(now, ZoneInfo(team.time_zone)) + ONE_DAY
    found = spend(team=team, start=end - LAST, end=end, by=(By.PROJECT, By.OWNER, By.METER))
    money: dict[str, Decimal] = defaultdict(Decimal)
    credit: dict[str, Decimal] = defaultdict(Decimal)
    for (project, owner, _meter), one in found.rows.items():
        if project is None and owner is None:
            for currency, amount in one.amounts.items():
                (credit if amount < 0 else money)[currency] += abs(amount)
    return dict(money), dict(credit)


def preview_rule(*, team: Team, said: RuleSaid, now: datetime, replaces: AttributionRule | None = None) -> Preview:
    """What would change if the rule were made now: last, or in the place of the one that it `replaces`."""
    standing = Standing.of(team)
    present = [standing.rule(row) for row in rules_of(team)]
    fresh = Rule(
        pk=0,
        name_pattern=said.name_pattern,
        account_id=said.account.pk if said.account else None,
        label_key=said.label_key,
        label_value=said.label_value,
        project_id=said.project.pk if said.project else None,
        owner_id=said.owner.pk if said.owner else None,
        labels=said.labels,
        split=said.split,
    )
    wanted = [fresh if replaces and rule.pk == replaces.pk else rule for rule in present]
    return _compare(team, standing, present, wanted if replaces else [*present, fresh], now=now)


def _compare(team: Team, standing: Standing, old: Sequence[Rule], new: Sequence[Rule], *, now: datetime) -> Preview:
    machines = machines_of(Instance.objects.filter(team=team, gone_at=None).order_by("name"), standing, now=now)
    pairs = [Moved(one, desired_attribution(one, old), desired_attribution(one, new)) for one in machines]
    moved = [pair for pair in pairs if pair.before.money != pair.after.money]
    return Preview(hour_of(now), sum(pair.after.rule_id == 0 for pair in pairs), moved)
