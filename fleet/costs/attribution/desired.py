"""Whose a machine is to be: what people set on it, before the first rule that matches, before nobody. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

WHOLE = "whole"
MANUAL, RULE, MACHINE = "manual", "rule", "machine"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as rules see it. `project_id`, `owner_id` and `split` ("" = not said) are what people set on it.

    `labels` are people's; `provider_labels` are only matched against. `job`: what keeps it busy now, or lately within this hour.
    """

    pk: int
    name: str
    account_id: int
    project_id: int | None = None
    owner_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    provider_labels: Mapping[str, object] = field(default_factory=dict)
    split: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in force. "" and None: no condition, or nothing given."""

    pk: int | None
    name_pattern: str = ""
    account_id: int | None = None
    label_key: str = ""
    label_value: str = ""
    project_id: int | None = None
    owner_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    split: str = WHOLE

    def matches(self, machine: Machine) -> bool:
        """Names in any case; a label that people set hides the provider's of the same key."""
        if self.account_id is not None and self.account_id != machine.account_id:
            return False
        if self.name_pattern and not fnmatchcase(machine.name.lower(), self.name_pattern.lower()):
            return False
        return not self.label_key or self._has_label({**machine.provider_labels, **machine.labels})

    def _has_label(self, labels: Mapping[str, object]) -> bool:
        return self.label_key in labels and self.label_value in ("", labels[self.label_key])


@dataclass(frozen=True, slots=True)
class Attribution:
    """Whose hours are. `source` and `rule_id` say why; they alone make no new span."""

    project_id: int | None
    owner_id: int | None
    job: str
    labels: Mapping[str, str]
    split: str
    source: str
    rule_id: int | None

    @property
    def money(self) -> tuple[object, ...]:
        """What decides where money goes."""
        return self.project_id, self.owner_id, self.job, dict(self.labels), self.split


def desired_attribution(machine: Machine, rules: Sequence[Rule]) -> Attribution:
    """`rules` in their order. The first that matches fills in what people left open on the machine, and no other is asked."""
    rule = next((rule for rule in rules if rule.matches(machine)), None)
    given = rule or Rule(pk=None)
    return Attribution(
        project_id=machine.project_id if machine.project_id is not None else given.project_id,
        owner_id=machine.owner_id if machine.owner_id is not None else given.owner_id,
        job=machine.job,
        labels={**given.labels, **machine.labels},
        split=machine.split or given.split,
        source=source_of(machine, rule),
        rule_id=given.pk,
    )


def source_of(machine: Machine, rule: Rule | None) -> str:
    if machine.project_id is not None or machine.owner_id is not None or machine.split:
        return MANUAL
    return RULE if rule else MACHINE
