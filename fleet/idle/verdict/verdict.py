"""Is this machine idle? One function that says so with its reasons: `judge`. Pure.

Three answers. ACTIVE: something shows use, or somebody said that it is in use. UNKNOWN: nothing shows use, but what would show it was not
read, not for long enough or not in time. IDLE: everything was read through the whole window, and nothing of it showed use. What is
missing, stale, sparse or from a clock that jumped is never idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.idle.verdict.evidence import GpuWindow, HostWindow, MachineWindow, Mode, ServingWindow
from fleet.idle.verdict.limits import Limits

SHORTEST = timedelta(minutes=5)
Value = float | int | str | datetime


class Answer(StrEnum):
    ACTIVE = "active"
    IDLE = "idle"
    UNKNOWN = "unknown"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact that speaks for the answer: a code that pages have words for, what it is about, and the reading beside its limit."""

    code: str
    subject: str = ""
    value: Value | None = None
    limit: Value | None = None


@dataclass(frozen=True, slots=True)
class IdleVerdict:
    """`because`: why; of IDLE, what was read and stayed below its limit. `quiet_since`: of IDLE, since when that is proved."""

    answer: Answer
    because: tuple[Reason, ...]
    quiet_since: datetime | None = None

    @property
    def codes(self) -> list[str]:
        return [reason.code for reason in self.because]


def judge(machine: MachineWindow, limits: Limits = Limits()) -> IdleVerdict:  # noqa: B008  # frozen
    """ValueError: the window is shorter than five minutes, in which every pause between two steps looks like rest."""
    if machine.window < SHORTEST:
        raise ValueError("an idle window has at least five minutes")
    if machine.powered is False:
        return IdleVerdict(Answer.OFF, (Reason("off"),))
    if said := tuple(_said(machine)):
        return IdleVerdict(Answer.ACTIVE, said)
    if shown := tuple(_shown(machine, limits)):
        return IdleVerdict(Answer.ACTIVE, shown)
    if missing := tuple(_missing(machine, limits)):
        return IdleVerdict(Answer.UNKNOWN, missing)
    return IdleVerdict(Answer.IDLE, tuple(_rest(machine, limits)), machine.now - machine.window)


def judge_parts(machine: MachineWindow, limits: Limits = Limits()) -> dict[str, IdleVerdict]:  # noqa: B008  # frozen
    """Of a shared machine, each owner's part by itself: for telling them. The machine is idle only if `judge` says so of all of it."""
    owners = {gpu.owner for gpu in machine.gpus} | {endpoint.owner for endpoint in machine.serving}
    return {owner: judge(_part(machine, owner), limits) for owner in sorted(owners - {""})}


def _part(machine: MachineWindow, owner: str) -> MachineWindow:
    gpus = tuple(gpu for gpu in machine.gpus if gpu.owner == owner)
    return replace(
        machine,
        gpus=gpus,
        gpu_count=len(gpus),
        serving=tuple(endpoint for endpoint in machine.serving if endpoint.owner == owner),
        holds=tuple(hold for hold in machine.holds if hold.owner in {owner, ""}),
    )


def _said(machine: MachineWindow) -> Iterator[Reason]:
    """What people and runs said outweighs every reading."""
    if machine.mode is Mode.PINNED:
        yield Reason("pinned")
    for hold in machine.holds:
        if hold.until is None or hold.until > machine.now:
            yield Reason(f"hold_{hold.kind}", hold.owner, hold.until)


def _shown(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    for gpu in machine.gpus:
        yield from tuple(gpu_use(gpu, limits)) or _worked(gpu, machine)
    for endpoint in machine.serving:
        yield from serving_use(endpoint, machine.mode)
    if machine.host is not None:
        yield from host_use(machine.host, machine, limits)


def gpu_use(gpu: GpuWindow, limits: Limits) -> Iterator[Reason]:
    """Any one reading that shows work. A stalled GPU is in use too: it is for an alert and a person, never for an idle stop."""
    name = f"GPU {gpu.index}"
    if is_stalled(gpu, limits):
        yield Reason("stalled", name, gpu.lowest_utilization_percent, limits.stalled_percent)
        return
    readings = (
        ("utilization", gpu.utilization_percent, limits.utilization_percent),
        ("sm_activity", gpu.sm_activity, limits.sm_activity),
        ("tensor_activity", gpu.tensor_activity, limits.tensor_activity),
        ("dram_activity", gpu.dram_activity, limits.dram_activity),
        ("power", gpu.power_watts, None if gpu.floor_watts is None else gpu.floor_watts * limits.floor_ratio),
    )
    for code, value, limit in readings:
        if value is not None and limit is not None and value >= limit:
            yield Reason(code, name, value, limit)


def _worked(gpu: GpuWindow, machine: MachineWindow) -> tuple[Reason, ...]:
    """What was sent late counts before the readings of its time are summed again."""
    if gpu.worked_at is None or gpu.worked_at < machine.now - machine.window:
        return ()
    return (Reason("worked", f"GPU {gpu.index}", gpu.worked_at),)


def is_stalled(gpu: GpuWindow, limits: Limits) -> bool:
    """Busy at every sample of the window, and at no sample with more power than at rest."""
    always = gpu.lowest_utilization_percent is not None and gpu.lowest_utilization_percent >= limits.stalled_percent
    if not always or gpu.power_watts is None or not gpu.power_limit_watts:
        return False
    return gpu.power_watts < gpu.power_limit_watts * limits.stalled_power_ratio


def serving_use(endpoint: ServingWindow, mode: Mode) -> Iterator[Reason]:
    """A model that waits for requests is in use, unless somebody said that this machine is idle by its requests."""
    if mode is not Mode.SERVING:
        yield Reason("serves", endpoint.name)
    if endpoint.requests:
        yield Reason("requests", endpoint.name, endpoint.requests, 0)
    if endpoint.waiting:
        yield Reason("requests_waiting", endpoint.name, endpoint.waiting, 0)


def host_use(host: HostWindow, machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    """Data preparation, downloads and uploads keep GPUs at rest."""
    readings: list[tuple[str, float | None, float]] = [
        ("cpu", host.cpu_percent, limits.cpu_percent),
        ("disk", host.disk_bytes_per_second, limits.disk_bytes_per_second),
        ("network", host.network_bytes_per_second, limits.network_bytes_per_second),
    ]
    for code, value, limit in readings:
        if value is not None and value >= limit:
            yield Reason(code, "", value, limit)
    if host.busy_kernels:
        yield Reason("busy_kernels", "", host.busy_kernels, 0)
    if machine.mode is Mode.INTERACTIVE:
        yield from _people(host, machine, limits)


def _people(host: HostWindow, machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    asked_at = host.kernel_active_at
    if asked_at is not None and asked_at >= machine.now - machine.window:
        yield Reason("kernel_active", "", asked_at)
    if host.ssh_sessions and _session_counts(machine, limits):
        yield Reason("ssh_sessions", "", host.ssh_sessions, limits.session_hours)


def _session_counts(machine: MachineWindow, limits: Limits) -> bool:
    """An open session stands for somebody who thinks, for some hours; then for somebody who forgot it."""
    last = max((at for at in (machine.active_at, machine.started_at) if at is not None), default=None)
    return last is None or machine.now - last < timedelta(hours=limits.session_hours)


def _missing(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    """What keeps rest from being proved."""
    checks: tuple[Callable[[MachineWindow, Limits], Iterator[Reason]], ...] = (
        _missing_power,
        _missing_gpus,
        _missing_host,
        _missing_serving,
        _unsettled,
    )
    for check in checks:
        yield from check(machine, limits)


def _missing_power(machine: MachineWindow, _limits: Limits) -> Iterator[Reason]:
    if machine.powered is None:
        yield Reason("provider_unclear")
    if not machine.driver_answers:
        yield Reason("driver_hung")
    if not machine.readings_answer:
        yield Reason("readings_unreachable")


def _missing_gpus(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    if not machine.gpus:
        yield Reason("no_report")
    elif machine.gpu_count is None or len(machine.gpus) < machine.gpu_count:
        yield Reason("gpus_missing", "", len(machine.gpus), machine.gpu_count)
    for gpu in machine.gpus:
        name = f"GPU {gpu.index}"
        if gpu.lost:
            yield Reason("gpu_lost", name)
            continue
        thin = tuple(_thin(name, gpu.coverage, gpu.newest_at, machine, limits))
        yield from thin
        if not thin and gpu.utilization_percent is None and gpu.sm_activity is None:
            yield Reason("not_read", name)


def _missing_host(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    host = machine.host
    if host is None:
        yield Reason("host_not_read")
        return
    yield from _thin("host", host.coverage, host.newest_at, machine, limits)
    unread = {"cpu": host.cpu_percent, "disk": host.disk_bytes_per_second, "network": host.network_bytes_per_second}
    for name, value in unread.items():
        if value is None:
            yield Reason("host_reading_missing", name)


def _missing_serving(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    """A model that is still loading has no requests either; and one whose counters nobody reads may have thousands."""
    if machine.mode is Mode.SERVING and not machine.serving:
        yield Reason("no_endpoint")
    for endpoint in machine.serving:
        if endpoint.ready_at is None:
            yield Reason("never_ready", endpoint.name)
        elif endpoint.requests is None or endpoint.coverage < limits.coverage:
            yield Reason("requests_not_read", endpoint.name, endpoint.coverage, limits.coverage)
        elif machine.now - endpoint.ready_at < machine.window:
            yield Reason("ready_too_lately", endpoint.name, endpoint.ready_at)


def _unsettled(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    """The window has to lie behind the start, with time to set up in front of it, and behind every jump of the clock."""
    begins = machine.now - machine.window
    if machine.started_at is None:
        yield Reason("start_unknown")
    elif machine.started_at + limits.settling > begins:
        yield Reason("started_lately", "", machine.started_at)
    if machine.clock_jumped_at is not None and machine.clock_jumped_at >= begins:
        yield Reason("clock_jumped", "", machine.clock_jumped_at)


def _thin(
    subject: str, coverage: float, newest_at: datetime | None, machine: MachineWindow, limits: Limits
) -> Iterator[Reason]:
    if newest_at is None or machine.now - newest_at > limits.stale_after:
        yield Reason("stale", subject, newest_at)
    elif newest_at > machine.now + limits.stale_after:
        yield Reason("from_the_future", subject, newest_at)
    if coverage < limits.coverage:
        yield Reason("sparse", subject, round(coverage, 3), limits.coverage)


def _rest(machine: MachineWindow, limits: Limits) -> Iterator[Reason]:
    """The readings that stayed below their limits, the highest of all GPUs: what a person checks before believing it."""
    highest = [
        ("utilization", [gpu.utilization_percent for gpu in machine.gpus], limits.utilization_percent),
        ("sm_activity", [gpu.sm_activity for gpu in machine.gpus], limits.sm_activity),
    ]
    for code, values, limit in highest:
        read = [value for value in values if value is not None]
        if read:
            yield Reason(code, "", max(read), limit)
    held = [gpu.memory_used_bytes for gpu in machine.gpus if gpu.memory_used_bytes is not None]
    if held:
        totals = [gpu.memory_total_bytes for gpu in machine.gpus if gpu.memory_total_bytes is not None]
        yield Reason("memory_held", "", sum(held), sum(totals) if len(totals) == len(machine.gpus) else None)
    host = machine.host
    if host is not None:
        yield Reason("cpu", "", host.cpu_percent, limits.cpu_percent)
        yield Reason("disk", "", host.disk_bytes_per_second, limits.disk_bytes_per_second)
        yield Reason("network", "", host.network_bytes_per_second, limits.network_bytes_per_second)
        if host.ssh_sessions:
            yield Reason("forgotten_session", "", host.ssh_sessions, limits.session_hours)
    for endpoint in machine.serving:
        yield Reason("requests", endpoint.name, 0, 0)
