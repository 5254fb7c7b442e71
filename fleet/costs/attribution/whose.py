"""Whose machines are now, for what budgets block: as the next hour of each will be attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleet.costs.attribution.desired import Machine, desired_attribution
from fleet.costs.attribution.reading import Standing, rules_in_force
from fleet.costs.attribution.sync import open_spans
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.plans.whose import Whose


class Attributed:
    """What rules and people made of machines. A split machine is of whom its shares say nothing else of."""

    def of_machines(self, machines: Sequence[Instance]) -> Mapping[int, Whose]:
        accounts = {machine.pk: machine.account_id for machine in machines}
        spans = open_spans(list(accounts))
        return {pk: Whose(accounts[pk], span.project_id, span.owner_id) for pk, span in spans.items()}

    def of_launch(self, operation: Operation, set_on_it: Whose) -> Whose:
        rules = list(rules_in_force(operation.team))
        if not rules:
            return set_on_it
        standing = Standing.of(operation.team)
        machine = Machine(
            pk=0,
            name=operation.machine_name,
            account_id=set_on_it.account_id,
            project_id=set_on_it.project_id,
            owner_id=standing.member(set_on_it.owner_id),
        )
        found = desired_attribution(machine, [standing.rule(row) for row in rules])
        return Whose(set_on_it.account_id, found.project_id, found.owner_id)
