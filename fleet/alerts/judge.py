"""Runs the rules over a snapshot. Pure but for the log: a rule that fails is left out, named, and silences no other."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from fleet.alerts.findings import WARNING, Finding
from fleet.alerts.rules import all_rules
from fleet.alerts.rules.base import RuleKind
from fleet.alerts.rules.own import finding_of
from fleet.alerts.snapshot import Snapshot, Trouble

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A rule as a team has it."""

    rule: RuleKind
    limits: Mapping[str, float]
    enabled: bool
    severity: str
    for_seconds: int
    changed_at: datetime | None = None


@dataclass
class Judgement:
    """`judged`: the kinds whose findings are complete. failed: kind -> the name of the error."""

    findings: list[Finding] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)


def defaults() -> list[Chosen]:
    return [
        Chosen(rule, rule.limits(), enabled=True, severity="", for_seconds=rule.for_seconds) for rule in all_rules()
    ]


def judge(snapshot: Snapshot, chosen: Iterable[Chosen], now: datetime) -> Judgement:
    judgement = Judgement()
    for one in chosen:
        kind = one.rule.kind
        try:
            found = list(one.rule.evaluate(snapshot, one.limits, now)) if one.enabled else []
        except Exception as error:
            logger.exception("The alert rule %s could not be evaluated", kind)
            judgement.failed[kind] = type(error).__name__
            continue
        judgement.judged.add(kind)
        judgement.findings += [replace(finding, severity=one.severity) for finding in found] if one.severity else found
    for kind, error_name in judgement.failed.items():
        trouble = Trouble(f"rule:{kind}", WARNING, values={"kind": kind, "error": error_name})
        judgement.findings.append(finding_of(trouble))
    return judgement
