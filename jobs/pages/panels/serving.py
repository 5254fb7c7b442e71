"""A job's server: how it answers, and beside it what it is and what can be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.formats import bytes_text, number_text
from fleet.pages.chartlist import percent_text
from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, JobState
from jobs.book.serving import Engine, Restart
from jobs.book.words import error_text
from jobs.pages.charts.served import latency_text
from jobs.pages.panels.panel import JobPanel
from jobs.pages.restarting import RestartLoss
from jobs.pages.summary import Stat
from jobs.serving.models import ServerState
from jobs.serving.standing import ServerFacts, Standing, facts_of, standing_of
from jobs.serving.words import code_text

MARKS = {ServerState.STARTING: "unknown", ServerState.UP: "working", ServerState.DOWN: "stalled"}


def context(_request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any] | None:
    standing = standing_of(attempt, now=timezone.now())
    if standing is None:
        return None
    server = standing.facts.server
    return {
        "facts": standing.facts,
        "mark": MARKS[ServerState(server.state)] if attempt.ended_at is None else "stopped",
        "code": code_text(server.code) if server.code else "",
        "detail": error_text(server.detail) if server.code == "not_reached" else server.detail,
        "metrics": metrics_text(standing.facts),
        "stats": list(stats(standing)),
    }


def stats(standing: Standing) -> Iterator[Stat]:
    """Only what is known: an engine that does not measure the time to the first token has no such figure."""
    latest = standing.facts.endpoint
    at = latest.sampled_at if latest else None
    yield from _latencies(standing)
    if latest is not None and latest.requests_waiting is not None:
        running, most = f"{round(latest.requests_running or 0):,}", f"{round(standing.waiting_most or 0):,}"
        note = _("%(running)s running, most waiting in a day %(most)s") % {"running": running, "most": most}
        yield Stat(_("Queue"), f"{round(latest.requests_waiting):,}", " " + _("waiting"), note, at)
    if latest is not None and latest.kv_cache_ratio is not None:
        note = _("peak of a day %(peak)s") % {"peak": percent_text(100 * (standing.kv_cache_most or 0))}
        yield Stat(_("KV cache"), number_text(100 * latest.kv_cache_ratio), "%", note, at)
    if standing.requests_per_second is not None:
        yield Stat(_("Requests"), number_text(standing.requests_per_second), "/s", _of_a_day(standing), at)
    if standing.memory_bytes is not None:
        note = _("most in a day %(most)s") % {"most": bytes_text(standing.memory_most or 0)}
        yield Stat(
            _("Memory of the server"), bytes_text(standing.memory_bytes), "", note, standing.facts.server.looked_at
        )
    if standing.up_ratio is not None:
        looks = ngettext("of %(n)s look in a day", "of %(n)s looks in a day", standing.looks)
        share = number_text(100 * standing.up_ratio)
        yield Stat(_("Answered"), share, "%", looks % {"n": f"{standing.looks:,}"}, standing.facts.server.looked_at)


def _latencies(standing: Standing) -> Iterator[Stat]:
    latest = standing.facts.endpoint
    at = latest.sampled_at if latest else None
    figures = (
        (_("TTFT p95"), standing.ttft_seconds_p95, _("time to the first token")),
        (_("TPOT p95"), standing.tpot_seconds_p95, _("time per output token")),
        (_("Answer p95"), standing.e2e_seconds_p95, _limit(standing)),
    )
    limit = standing.facts.serving.timeout_seconds
    for name, seconds, note in figures:
        if seconds is not None:
            value, _space, unit = latency_text(seconds).partition(" ")
            slow = limit is not None and seconds >= limit and seconds == standing.e2e_seconds_p95
            yield Stat(name, value, f" {unit}", note, at, slow=slow)


def _limit(standing: Standing) -> str:
    limit = standing.facts.serving.timeout_seconds
    return _("clients wait %(seconds)s s") % {"seconds": f"{limit:g}"} if limit else ""


def _of_a_day(standing: Standing) -> str:
    if standing.failed_ratio is None:
        return ""
    said = _("%(count)s answers in a day, %(share)s failed")
    return said % {"count": f"{standing.finished:,}", "share": percent_text(100 * standing.failed_ratio)}


def metrics_text(facts: ServerFacts) -> str:
    """Who reads its figures, or why nobody can."""
    server = facts.server
    if server.read_by_agent:
        return _("read by the machine's agent")
    if server.metrics_code:
        return code_text(server.metrics_code)
    return _("read through SSH") if server.read_at else ""


def server_context(_request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any] | None:
    facts = facts_of(attempt)
    if facts is None:
        return None
    runs = attempt.state == JobState.RUNNING and not attempt.end_asked and job.stop_asked_at is None
    return {
        "facts": facts,
        "engine": Engine(facts.serving.engine).label,
        "restart": Restart(facts.serving.restart).label,
        "metrics": metrics_text(facts),
        "loss": RestartLoss.of(facts) if runs else None,
    }


PANEL = JobPanel("serving", "jobs/panels/serving.html", context)
SERVER_PANEL = JobPanel("server", "jobs/panels/server.html", server_context, place="side")
