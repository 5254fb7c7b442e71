"""What is known of machines without their windows, for any number of them with a constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from fleet.idle.policies.covering import JudgedBy, judged_by
from fleet.idle.verdict.evidence import Hold
from fleet.idle.verdict.limits import Limits
from fleet.idle.watch import gpus as gpu_rows
from fleet.idle.watch.gpus import Cards, cards_of
from fleet.idle.watch.highest import window_begins
from fleet.idle.watch.models import IdleVerdictRow
from fleet.idle.watch.owners import owners_of
from fleet.idle.watch.power import is_on
from fleet.idle.watch.reports import AgentRow, HostRow, agents_of, changed_of, hosts_of
from fleet.idle.watch.serving import Endpoint, endpoints_of
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Hold as HoldRow
from fleet.inventory.models import Instance
from fleet.telemetry.latest import REPORT_SLACK
from fleet.telemetry.pace import DEFAULT_INTERVAL_SECONDS, scrape_intervals


class Before(NamedTuple):
    """What the last verdict kept of a machine."""

    active_at: datetime | None = None
    ssh_sessions: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known of one machine without its window. `limits` fit how often it reports; `before`: as it was judged last."""

    instance: Instance
    by: JudgedBy
    limits: Limits
    since: datetime
    pace_seconds: int
    powered: bool | None
    cards: Cards
    host: HostRow | None
    agent: AgentRow | None
    started_at: datetime
    endpoints: Sequence[Endpoint]
    holds: tuple[Hold, ...]
    before: Before
    owners: Mapping[int, str]

    def active_at(self, now: datetime) -> datetime | None:
        """The newest reading that showed use, or somebody who came. What lies ahead is nobody's."""
        seen = [card.gpu.worked_at for card in self.cards.judged]
        seen += [endpoint.last_request_at for endpoint in self.endpoints]
        seen.append(self.host.kernel_active_at if self.host else None)
        seen += [self.came_at, self.before.active_at]
        return max((at for at in seen if at is not None and at <= now), default=None)

    @property
    def came_at(self) -> datetime | None:
        """When somebody logged in, if they did since the machine was judged last."""
        if self.host is None or not self.host.ssh_sessions:
            return None
        return self.host.sampled_at if self.host.ssh_sessions > (self.before.ssh_sessions or 0) else None


def known_machines(machines: Sequence[Instance], *, now: datetime) -> list[Known]:
    """`machines` with their accounts."""
    ids = [machine.pk for machine in machines]
    ways = judged_by(machines)
    # Not for each machine: a policy has one window.
    begins = {window: window_begins(now, window) for window in {way.window for way in ways.values()}}
    sinces = [begins[ways[pk].window] for pk in ids]
    settling = max((way.limits.settling for way in ways.values()), default=timedelta())
    cards, hosts, agents = cards_of(ids), hosts_of(ids), agents_of(ids)
    paces = scrape_intervals(ids)
    changed = changed_of(ids, since=min(sinces, default=now) - settling)
    endpoints, holds = endpoints_of(ids, sinces, now=now), holds_of(ids, now=now)
    before, owners = before_of(ids), owners_of(ids)
    return [
        Known(
            instance=machine,
            by=(way := ways[pk]),
            limits=limits_for(way.limits, agent := agents.get(pk), paces.get(pk, 0)),
            since=since,
            pace_seconds=pace_of(agent, paces.get(pk), since),
            powered=is_on(machine, now=now),
            cards=cards.get(pk, gpu_rows.NONE),
            host=hosts.get(pk),
            agent=agent,
            started_at=started_at(machine, agent, changed.get(pk)),
            endpoints=endpoints.get(pk, ()),
            holds=holds.get(pk, ()),
            before=before.get(pk, Before()),
            owners=owners,
        )
        for machine, pk, since in zip(machines, ids, sinces, strict=True)
    ]


def limits_for(limits: Limits, agent: AgentRow | None, scrape_seconds: int) -> Limits:
    """Who was told to read or report seldom is not silent in between."""
    told = max(agent.interval_seconds + agent.report_seconds if agent else 0, scrape_seconds)
    allowed = timedelta(seconds=told) + REPORT_SLACK
    return limits if allowed <= limits.stale_after else replace(limits, stale_after=allowed)


def pace_of(agent: AgentRow | None, scrape_seconds: int | None, since: datetime) -> int:
    """How far apart samples come that do not say it, as rollups have it: an agent that is silent sets no pace."""
    if agent is not None and agent.batch_at is not None and agent.batch_at >= since:
        return agent.interval_seconds
    return scrape_seconds or (agent.interval_seconds if agent else DEFAULT_INTERVAL_SECONDS)


def started_at(machine: Instance, agent: AgentRow | None, changed_at: datetime | None) -> datetime:
    """The newest of all that begins a run: the provider's word, its state as listings showed it, an agent's first word, a boot, other software."""
    told = (machine.started_at, machine.state_since, agent.enrolled_at if agent else None, changed_at)
    return max(at for at in told if at is not None)


def holds_of(instance_ids: Sequence[int], *, now: datetime) -> dict[int, tuple[Hold, ...]]:
    found: dict[int, list[Hold]] = defaultdict(list)
    rows: Iterable[HoldRow] = holds_in_force(now=now).filter(instance__in=instance_ids).select_related("owner")
    for row in rows:
        owner = row.owner.username if row.owner else ""
        found[row.instance_id].append(Hold(row.kind, owner, row.expires_at, row.reason))
    return {pk: tuple(holds) for pk, holds in found.items()}


def before_of(instance_ids: Sequence[int]) -> dict[int, Before]:
    rows = IdleVerdictRow.objects.filter(instance__in=instance_ids)
    kept = rows.values_list("instance_id", "active_at", "ssh_sessions")
    return {pk: Before(active_at, ssh_sessions) for pk, active_at, ssh_sessions in kept}
