"""What a machine's page says of its acceptance test, and rows for the page of its reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.inventory.models import Instance
from fleet.panels import Context
from fleet.quality.acceptance.figures import Result
from fleet.quality.acceptance.words import PARTS, RESULTS, SOURCES, check_text, figure_text, shortfall_text
from fleet.quality.models import AcceptanceReport
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role
from fleet.telemetry.actions.ask import offers_action, open_action
from fleet.telemetry.actions.models import AgentAction, AgentActionName, AgentActionState

BAD = (Result.WRONG, Result.SHORT)
SHOWN_SHORT = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One check in words. `result`: a Result's value."""

    what: str
    measured: str
    promised: str
    source: str
    result: str
    result_words: str


def lines_of(report: AcceptanceReport) -> list[Line]:
    """What is known of at least one side, what is wrong first."""
    lines = [_line(check) for check in report.checks if check["measured"] is not None or check["promised"] is not None]
    order = {Result.WRONG: 0, Result.SHORT: 1, Result.OK: 2}
    return sorted(lines, key=lambda line: order.get(Result(line.result), 3))


def _line(check: Mapping[str, Any]) -> Line:
    measured, promised = (figure_text(check[side], check["unit"]) for side in ("measured", "promised"))
    result = check["result"] if check["result"] in tuple(Result) else Result.UNKNOWN
    words = RESULTS[result]
    return Line(
        _headed(check_text(check["name"])),
        measured,
        promised,
        str(SOURCES.get(check["source"], "")),
        result,
        str(words),
    )


def _headed(name: str) -> str:
    """As the beginning of a row: "vCPUs" keeps its own spelling."""
    return name if name[:1] == "v" and name[1:2].isupper() else name[:1].upper() + name[1:]


def shortfalls(report: AcceptanceReport) -> list[str]:
    return [shortfall_text(check) for check in report.checks if check["result"] in BAD]


def unmeasured(report: AcceptanceReport) -> list[tuple[str, str]]:
    """(part, the agent's reason)."""
    told = report.measured.get("not_measured")
    pairs = told.items() if isinstance(told, dict) else ()
    return [(str(PARTS.get(part, part)), str(why)) for part, why in pairs]


def newest_report(instance: Instance) -> AcceptanceReport | None:
    return AcceptanceReport.objects.filter(instance=instance).order_by("-at", "-pk").first()


def acceptance_context(request: TeamRequest, instance: Instance) -> Context | None:
    """None where nothing was tested and nothing can be."""
    report = newest_report(instance)
    state = asking_state(request, instance)
    if report is None and not (state["offered"] or state["open"] or state["failed"]):
        return None
    short = shortfalls(report) if report else []
    return {
        "instance": instance,
        "report": report,
        "short": short[:SHOWN_SHORT],
        "more": max(0, len(short) - SHOWN_SHORT),
        **state,
    }


def asking_state(request: TeamRequest, instance: Instance) -> Context:
    """`failed`: the newest try where it ended without a result."""
    newest = AgentAction.objects.filter(instance=instance, name=AgentActionName.ACCEPT).order_by("-pk").first()
    ended_badly = newest is not None and newest.state in (AgentActionState.FAILED, AgentActionState.LOST)
    return {
        "offered": offers_action(instance, AgentActionName.ACCEPT),
        "open": open_action(instance, AgentActionName.ACCEPT),
        "failed": newest if ended_badly else None,
        "may_ask": request.membership.can(Role.OPERATOR),
    }
