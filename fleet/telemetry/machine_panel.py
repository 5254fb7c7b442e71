"""What a machine's page says of its agent and of the software the agent found."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from fleet.inventory.environments.verdicts import verdict_of_machine
from fleet.inventory.models import EnvironmentReport, Instance
from fleet.inventory.remote import fingerprint
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role
from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.scrape.targets import host_of
from fleet.telemetry.scrape.words import YIELDS, failure_text
from fleet.telemetry.serving.listing import endpoints_of
from fleet.telemetry.serving.series import INTERVAL_SECONDS
from fleet.telemetry.words import ENVIRONMENT_LABELS, conflict_word, nvml_word

# Skew this small says nothing of a clock.
SHOWN_SKEW_SECONDS = 5.0


def agent_context(_request: HttpRequest, instance: Instance) -> Context | None:
    agent = Agent.objects.filter(instance=instance, revoked_at=None).first()
    return None if agent is None else {"agent": agent, **agent_facts(agent)}


def agent_facts(agent: Agent) -> dict[str, Any]:
    """What templates say of an agent beside its own fields."""
    skew = agent.clock_skew_seconds or 0.0
    return {
        "nvml": nvml_word(agent.nvml_state),
        "conflict": conflict_word(agent.match_conflict) if agent.match_conflict else "",
        # The stored number corrects its times: a clock that is behind needs a positive one.
        "clock_behind_seconds": skew if skew > SHOWN_SKEW_SECONDS else None,
        "clock_ahead_seconds": -skew if skew < -SHOWN_SKEW_SECONDS else None,
        "dropped_total": sum(agent.dropped_values.values()),
        "dropped": sorted(agent.dropped_values.items(), key=lambda item: -item[1]),
        "heartbeat_period_seconds": 15,
    }


def serving_context(_request: HttpRequest, instance: Instance) -> Context | None:
    endpoints = endpoints_of(instance, now=timezone.now())
    return {"endpoints": endpoints, "period": INTERVAL_SECONDS} if endpoints else None


def environment_context(request: HttpRequest, instance: Instance) -> Context | None:
    report = EnvironmentReport.objects.filter(instance=instance).order_by("-reported_at", "-pk").first()
    if report is None:
        return None
    data = report.data
    facts = [(label, data[name]) for name, label in ENVIRONMENT_LABELS.items() if data.get(name)]
    frameworks = sorted((data.get("frameworks") or {}).items())
    return {
        "report": report,
        "facts": facts,
        "frameworks": frameworks,
        "verdict": verdict_of_machine(instance),
        "instance": instance,
        "request": request,
    }


def exporters_context(request: TeamRequest, instance: Instance) -> Context | None:
    """None where there is nothing to show and nothing to add."""
    may_change = request.membership.can(Role.OPERATOR)
    targets = ScrapeTarget.objects.filter(instance=instance).defer("memory", "token").order_by("pk")
    rows = [target_row(target) for target in targets]
    return {"instance": instance, "targets": rows, "may_change": may_change} if rows or may_change else None


def target_row(target: ScrapeTarget) -> dict[str, Any]:
    return {
        "target": target,
        "failure": failure_text(target),
        "yields": YIELDS.get(target.yields_to, ""),
        **ssh_context(target),
    }


def ssh_context(target: ScrapeTarget) -> dict[str, Any]:
    """The host keys of the way through SSH, as fingerprints: what was confirmed, and what waits for it."""
    host = host_of(target)
    return {
        "pinned": fingerprint(host.pinned) if host else "",
        "offered": fingerprint(host.offered) if host else "",
    }
