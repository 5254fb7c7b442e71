"""From rows to the windows that verdicts are made of, for any number of machines with a constant number of queries.

Two looks. The first takes the newest readings alone and believes the best of all the rest: whoever is not idle even so is not idle. Only for
those that may be idle the windows are read. Both are judged by the same function.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleet.idle.policies.covering import JudgedBy, judged_by
from fleet.idle.verdict.evidence import GpuWindow, Hold, HostWindow, MachineWindow
from fleet.idle.verdict.limits import Limits
from fleet.idle.watch import gpus as gpu_rows
from fleet.idle.watch.gpus import Card, Cards, cards_of
from fleet.idle.watch.highest import GpuHighest, HostHighest, Readings, Wanted, both, window_begins
from fleet.idle.watch.highest_postgresql import PostgresReadings
from fleet.idle.watch.highest_store import StoreReadings
from fleet.idle.watch.models import IdleVerdictRow
from fleet.idle.watch.owners import owners_of
from fleet.idle.watch.power import is_on
from fleet.idle.watch.reports import AgentRow, HostRow, agents_of, changed_of, hosts_of
from fleet.idle.watch.serving import Endpoint, endpoints_of, serving_now
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Hold as HoldRow
from fleet.inventory.models import Instance
from fleet.states import DEFAULTS
from fleet.telemetry.latest import REPORT_SLACK
from fleet.telemetry.pace import DEFAULT_INTERVAL_SECONDS, scrape_intervals
from fleet.telemetry.store import current_store
from fleet.telemetry.store.base import StoreError
from fleet.telemetry.store.postgresql import PostgresStore

logger = logging.getLogger(__name__)


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
    before: IdleVerdictRow | None
    owners: Mapping[int, str]

    def active_at(self, now: datetime) -> datetime | None:
        """The newest reading that showed use, or somebody who came. What lies ahead is nobody's."""
        seen = [card.gpu.worked_at for card in self.cards.judged]
        seen += [endpoint.last_request_at for endpoint in self.endpoints]
        seen.append(self.host.kernel_active_at if self.host else None)
        seen += [self.came_at, self.before.active_at if self.before else None]
        return max((at for at in seen if at is not None and at <= now), default=None)

    @property
    def came_at(self) -> datetime | None:
        """When somebody logged in, if they did since the machine was judged last."""
        if self.host is None or not self.host.ssh_sessions:
            return None
        counted = self.before.ssh_sessions if self.before else None
        return self.host.sampled_at if self.host.ssh_sessions > (counted or 0) else None


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
    rows, owners = IdleVerdictRow.objects.in_bulk(ids), owners_of(ids)
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
            before=rows.get(pk),
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


def first_look(known: Known, *, now: datetime) -> MachineWindow:
    """The newest readings, and for everything that they say nothing of the best that it could be."""
    gpus = tuple(_newest(card, known) for card in known.cards.judged)
    return _machine(known, gpus, _newest_host(known), now=now)


def windows(known: Sequence[Known], *, now: datetime) -> list[MachineWindow]:
    """The whole windows, in the same order. Two questions to the engine, and none where there is nobody to ask about."""
    if not known:
        return []
    try:
        gpus, hosts = _highest(known, now=now)
    except StoreError as error:
        logger.warning("Idle machines are not looked for: %s", error)
        return [replace(first_look(one, now=now), readings_answer=False) for one in known]
    return [_whole(one, gpus, hosts.get(one.instance.pk), now=now) for one in known]


def readings() -> Readings:
    store = current_store()
    return PostgresReadings() if isinstance(store, PostgresStore) else StoreReadings(store)


def _highest(known: Sequence[Known], *, now: datetime) -> tuple[Mapping[int, GpuHighest], Mapping[int, HostHighest]]:
    each = [(gpu.pk, one.since, one.pace_seconds) for one in known for gpu in _gpus(one.cards)]
    ids, sinces, paces = zip(*each, strict=True) if each else ((), (), ())
    engine = readings()
    hosts = Wanted(
        [one.instance.pk for one in known], [one.since for one in known], [one.pace_seconds for one in known]
    )
    return engine.gpus(Wanted(ids, sinces, paces), now=now), engine.hosts(hosts, now=now)


def _gpus(cards: Cards) -> dict[gpu_rows.GpuRow, None]:
    """Those judged, and the cards that they are parts of."""
    return dict.fromkeys(gpu for card in cards.judged for gpu in (card.gpu, card.whole))


def _whole(known: Known, gpus: Mapping[int, GpuHighest], host: HostHighest | None, *, now: datetime) -> MachineWindow:
    expected = (now - known.since - known.limits.stale_after).total_seconds()
    judged = tuple(
        _over_window(card, known, gpus.get(card.gpu.pk), gpus.get(card.whole.pk), expected)
        for card in known.cards.judged
    )
    return _machine(known, judged, _host_over_window(known, host, expected), now=now)


def _machine(known: Known, gpus: tuple[GpuWindow, ...], host: HostWindow | None, *, now: datetime) -> MachineWindow:
    agent, cards = known.agent, known.cards
    holds_memory = any(card.gpu.holds_memory for card in cards.judged)
    return MachineWindow(
        now=now,
        window=known.by.window,
        mode=known.by.mode,
        powered=known.powered,
        gpu_count=cards.expected(known.instance.gpu_count),
        gpus=gpus,
        host=host,
        started_at=known.started_at,
        serving=serving_now(known.endpoints, began_at=known.started_at, holds_memory=holds_memory, now=now),
        holds=known.holds,
        active_at=known.active_at(now),
        clock_jumped_at=agent.clock_jumped_at if agent else None,
        driver_answers=agent is None or agent.answers(now),
    )


def _newest(card: Card, known: Known) -> GpuWindow:
    """Of a reading from before the window nothing is taken but how old it is."""
    gpu, whole = card.gpu, card.whole
    counts = gpu.sampled_at is not None and gpu.sampled_at >= known.since
    base = _base(card, known, coverage=1.0)
    if not counts:
        return base
    return replace(
        base,
        utilization_percent=gpu.utilization_percent,
        sm_activity=gpu.sm_activity,
        tensor_activity=gpu.tensor_activity,
        dram_activity=gpu.dram_activity,
        power_watts=_power(whole, known) if gpu is not whole else gpu.power_watts,
    )


def _power(whole: gpu_rows.GpuRow, known: Known) -> float | None:
    return whole.power_watts if whole.sampled_at is not None and whole.sampled_at >= known.since else None


def _over_window(
    card: Card, known: Known, highest: GpuHighest | None, of_whole: GpuHighest | None, expected_seconds: float
) -> GpuWindow:
    if highest is None:
        return _base(card, known, coverage=0.0)
    return replace(
        _base(card, known, coverage=_share(highest.covered_seconds, expected_seconds)),
        utilization_percent=highest.utilization_percent,
        lowest_utilization_percent=highest.lowest_utilization_percent,
        sm_activity=highest.sm_activity,
        tensor_activity=highest.tensor_activity,
        dram_activity=highest.dram_activity,
        power_watts=of_whole.power_watts if of_whole else None,
    )


def _base(card: Card, known: Known, *, coverage: float) -> GpuWindow:
    gpu, whole = card.gpu, card.whole
    return GpuWindow(
        index=gpu.index,
        coverage=coverage,
        newest_at=gpu.sampled_at,
        power_limit_watts=whole.power_limit_watts,
        floor_watts=whole.rest_watts,
        memory_used_bytes=gpu.memory_used_bytes,
        process_count=gpu.process_count,
        lost=card.lost,
        owner=known.owners.get(gpu.pk, ""),
        worked_at=gpu.worked_at if _as_strict_as_telemetry(known.limits) else None,
    )


def _as_strict_as_telemetry(limits: Limits) -> bool:
    """A policy may call use what telemetry calls work, or more, never less: else its own limits decide alone."""
    return limits.utilization_percent <= DEFAULTS.busy_percent and limits.sm_activity <= DEFAULTS.stalled_sm_activity


def _newest_host(known: Known) -> HostWindow | None:
    """Rates of one moment say nothing of five minutes: they are believed to be low, where they are read at all."""
    host = known.host
    if host is None:
        return None
    low = {
        "cpu_percent": host.cpu_percent,
        "disk_bytes_per_second": both(host.disk_read_bytes_per_second, host.disk_write_bytes_per_second),
        "network_bytes_per_second": both(host.network_rx_bytes_per_second, host.network_tx_bytes_per_second),
    }
    counts = host.sampled_at >= known.since
    return HostWindow(
        coverage=1.0,
        newest_at=host.sampled_at,
        ssh_sessions=host.ssh_sessions if counts else None,
        busy_kernels=host.jupyter_busy_kernels if counts else None,
        kernel_active_at=host.kernel_active_at,
        **{name: None if value is None else 0.0 for name, value in low.items()},
    )


def _host_over_window(known: Known, highest: HostHighest | None, expected_seconds: float) -> HostWindow | None:
    newest_at = known.host.sampled_at if known.host else None
    if highest is None:
        return HostWindow(coverage=0.0, newest_at=newest_at) if newest_at else None
    return HostWindow(
        coverage=_share(highest.covered_seconds, expected_seconds),
        newest_at=newest_at,
        cpu_percent=highest.cpu_percent,
        disk_bytes_per_second=both(highest.disk_read_bytes_per_second, highest.disk_write_bytes_per_second),
        network_bytes_per_second=both(highest.network_rx_bytes_per_second, highest.network_tx_bytes_per_second),
        ssh_sessions=_whole_number(highest.ssh_sessions),
        busy_kernels=_whole_number(highest.jupyter_busy_kernels),
        kernel_active_at=known.host.kernel_active_at if known.host else None,
    )


def _whole_number(value: float | None) -> int | None:
    return None if value is None else round(value)


def _share(seconds: float, expected: float) -> float:
    return 1.0 if expected <= 0 else min(1.0, seconds / expected)
