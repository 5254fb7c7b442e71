"""From rows to the windows that verdicts are made of, for any number of machines with a constant number of queries.

Two looks. The first takes the newest readings alone and believes the best of all the rest: whoever is not idle even so is not idle. Only for
those that may be idle the windows are read. Both are judged by the same function.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from fleet.idle.verdict.evidence import GpuWindow, HostWindow, MachineWindow
from fleet.idle.verdict.limits import Limits
from fleet.idle.watch import gpus as gpu_rows
from fleet.idle.watch.gpus import Card, Cards
from fleet.idle.watch.highest import GpuHighest, HostHighest, Readings, Wanted, both
from fleet.idle.watch.highest_postgresql import PostgresReadings
from fleet.idle.watch.highest_store import StoreReadings
from fleet.idle.watch.known import Known
from fleet.idle.watch.reports import HostRow
from fleet.idle.watch.serving import serving_now
from fleet.states import DEFAULTS
from fleet.telemetry.store import current_store
from fleet.telemetry.store.base import StoreError
from fleet.telemetry.store.postgresql import PostgresStore

logger = logging.getLogger(__name__)
# Of shorter windows so much lies behind the last rollup that it has to be read.
BELIEVED_IN = timedelta(minutes=20)


def first_look(known: Known, *, now: datetime) -> MachineWindow:
    """The newest readings, and for everything that they say nothing of the best that it could be."""
    gpus = tuple(_newest(card, known) for card in known.cards.judged)
    return _machine(known, gpus, _newest_host(known), now=now)


def windows(known: Sequence[Known], *, now: datetime, to_the_second: bool = False) -> list[MachineWindow]:
    """The whole windows, in the same order. Two questions to the engine, and none where there is nobody to ask about.

    `to_the_second`: the newest minutes of GPUs from their samples, not from what their latest rows say of them.
    """
    if not known:
        return []
    try:
        gpus, hosts = _highest(known, now=now, to_the_second=to_the_second)
    except StoreError as error:
        logger.warning("Idle machines are not looked for: %s", error)
        return [replace(first_look(one, now=now), readings_answer=False) for one in known]
    return [_whole(one, gpus, hosts.get(one.instance.pk), now=now) for one in known]


def readings() -> Readings:
    store = current_store()
    return PostgresReadings() if isinstance(store, PostgresStore) else StoreReadings(store)


def _highest(
    known: Sequence[Known], *, now: datetime, to_the_second: bool
) -> tuple[Mapping[int, GpuHighest], Mapping[int, HostHighest]]:
    gpus = [(gpu, one) for one in known for gpu in _gpus(one.cards)]
    believed = [] if to_the_second else [one for one in known if now - one.since >= BELIEVED_IN]
    wanted = Wanted(
        [gpu.pk for gpu, _one in gpus],
        [one.since for _gpu, one in gpus],
        [one.pace_seconds for _gpu, one in gpus],
        {gpu.pk: rest for one in believed for gpu in _gpus(one.cards) if (rest := gpu.rests)},
    )
    hosts = Wanted(
        [one.instance.pk for one in known],
        [one.since for one in known],
        [one.pace_seconds for one in known],
        {one.instance.pk: rest for one in believed if (rest := host_rests(one))},
    )
    engine = readings()
    return engine.gpus(wanted, now=now), engine.hosts(hosts, now=now)


def host_rests(known: Known) -> tuple[datetime, datetime] | None:
    """An agent reads all of a machine at once: where its GPUs rest without a gap, and its own newest reading shows no use, so it does itself.

    What began since the last rollup and paused just now is seen some minutes later; right before a stop it is looked for to the second.
    """
    host, rests = known.host, [card.gpu.rests for card in known.cards.judged]
    begun = [rest[0] for rest in rests if rest is not None]
    if host is None or not rests or len(begun) < len(rests) or _is_used(host, known.limits):
        return None
    return max(begun), host.sampled_at


def _is_used(host: HostRow, limits: Limits) -> bool:
    """Not read counts as used here: the samples before it may say more."""
    readings_and_limits = (
        (host.cpu_percent, limits.cpu_percent),
        (both(host.disk_read_bytes_per_second, host.disk_write_bytes_per_second), limits.disk_bytes_per_second),
        (both(host.network_rx_bytes_per_second, host.network_tx_bytes_per_second), limits.network_bytes_per_second),
    )
    return any(value is None or value >= limit for value, limit in readings_and_limits)


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
    watts = whole.power_watts if whole.sampled_at is not None and whole.sampled_at >= known.since else None
    counts = gpu.sampled_at is not None and gpu.sampled_at >= known.since
    return _window(card, known, 1.0, gpu if counts else None, watts)


def _over_window(
    card: Card, known: Known, highest: GpuHighest | None, of_whole: GpuHighest | None, expected_seconds: float
) -> GpuWindow:
    if highest is None:
        return _window(card, known, 0.0, None, None)
    newest = _newest(card, known)
    return _window(
        card,
        known,
        _share(highest.covered_seconds, expected_seconds),
        _more_of(highest, newest),
        _more(of_whole.power_watts if of_whole else None, newest.power_watts),
    )


def _more_of(highest: GpuHighest, newest: GpuWindow) -> GpuHighest:
    """With the newest reading, which may be all that is known of the last minutes."""
    return GpuHighest(
        highest.covered_seconds,
        highest.lowest_utilization_percent,
        _more(highest.utilization_percent, newest.utilization_percent),
        _more(highest.sm_activity, newest.sm_activity),
        _more(highest.tensor_activity, newest.tensor_activity),
        _more(highest.dram_activity, newest.dram_activity),
        highest.power_watts,
    )


def _more(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return max(other, one)


def _window(
    card: Card, known: Known, coverage: float, read: gpu_rows.GpuRow | GpuHighest | None, power_watts: float | None
) -> GpuWindow:
    """Fields by their place, because this is made twenty thousand times a minute."""
    gpu, whole = card.gpu, card.whole
    shown = (None,) * 6 if read is None else (
        read.utilization_percent, read.sm_activity, read.tensor_activity, read.dram_activity, power_watts,
        read.lowest_utilization_percent if isinstance(read, GpuHighest) else None,
    )  # fmt: skip
    worked_at = gpu.worked_at if gpu.worked_at is not None and _as_strict_as_telemetry(known.limits) else None
    return GpuWindow(
        gpu.index, coverage, gpu.sampled_at, *shown, whole.power_limit_watts, whole.rest_watts, gpu.memory_used_bytes,
        gpu.memory_total_bytes, gpu.process_count, card.lost, known.owners.get(gpu.pk, ""), worked_at,
    )  # fmt: skip


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
    newest = _newest_host(known)
    if highest is None or newest is None:
        return newest and HostWindow(coverage=0.0, newest_at=newest.newest_at)
    return HostWindow(
        coverage=_share(highest.covered_seconds, expected_seconds),
        newest_at=newest.newest_at,
        cpu_percent=highest.cpu_percent,
        disk_bytes_per_second=both(highest.disk_read_bytes_per_second, highest.disk_write_bytes_per_second),
        network_bytes_per_second=both(highest.network_rx_bytes_per_second, highest.network_tx_bytes_per_second),
        ssh_sessions=_whole_number(_more(highest.ssh_sessions, newest.ssh_sessions)),
        busy_kernels=_whole_number(_more(highest.jupyter_busy_kernels, newest.busy_kernels)),
        kernel_active_at=newest.kernel_active_at,
    )


def _whole_number(value: float | None) -> int | None:
    return None if value is None else round(value)


def _share(seconds: float, expected: float) -> float:
    return 1.0 if expected <= 0 else min(1.0, seconds / expected)
