"""What GPUs do all day. Each pattern is a pure function of a moment and a seed.

`t` is seconds since the sandbox was born; it is negative for the day before, which the agents send first. A seed is a
machine's number shifted left by eight bits plus the GPU's index: GPUs of one machine share what their host decides
(`seed >> 8`), such as when a checkpoint is written, and differ in the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import pi, sin

from fleet.sandbox.noise import clamp, drift, jitter, scatter

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
# NVML's reasons for slower clocks.
GPU_IDLE, SW_POWER_CAP, SW_THERMAL, HW_THERMAL = 0x1, 0x4, 0x20, 0x40


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """How busy one GPU is; shares are 0-1. `power`: 0 = at rest, 1 = at the limit; `temperature_celsius`: None = follows power."""

    utilization: float = 0.0
    memory: float = 0.0
    sm: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    power: float = 0.0
    clock: float = 0.15
    pcie: float = 0.0
    nvlink: float = 0.0
    throttle: int = GPU_IDLE
    temperature_celsius: float | None = None
    processes: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """What the same work asks of the machine. Shares are 0-1, rates in bytes a second, `kernel_idle_seconds`: since a notebook last ran."""

    cpu: float = 0.003
    iowait: float = 0.0
    cpu_pressure: float = 0.0
    io_pressure: float = 0.0
    memory: float = 0.06
    read: float = 4e4
    write: float = 2e5
    read_latency_seconds: float = 0.0004
    received: float = 3e4
    sent: float = 2e4
    ssh_sessions: int = 0
    kernels: int = 0
    busy_kernels: int = 0
    kernel_idle_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    gpu: GpuLoad
    host: HostLoad


Pattern = Callable[[float, int], Load]


def training(t: float, seed: int) -> Load:
    """A plateau near 97 %, broken every half hour or so while a checkpoint is written."""
    host = seed >> 8
    cycle = (25 + 20 * scatter(1, host)) * MINUTE
    since_checkpoint = (t + cycle * scatter(2, host)) % cycle
    if since_checkpoint < 40:
        return _checkpoint(t, seed, since_checkpoint)
    level = clamp(0.965 + 0.02 * jitter(t, seed), 0, 1)
    gpu = GpuLoad(
        utilization=level,
        memory=0.78 + 0.05 * scatter(3, seed),
        sm=0.87 * level + 0.02 * jitter(t, seed + 11),
        tensor=0.52 * level + 0.03 * jitter(t, seed + 12),
        dram=0.44 * level + 0.03 * jitter(t, seed + 13),
        power=0.84 * level + 0.03 * jitter(t, seed + 14),
        clock=0.93 + 0.03 * jitter(t, seed + 15),
        pcie=0.08,
        nvlink=0.34 * level,
        throttle=SW_POWER_CAP if level > 0.975 else 0,
        processes=1,
    )
    read = 2.4e8 + 6e7 * jitter(t, host + 1)
    return Load(
        gpu, HostLoad(cpu=0.22 + 0.04 * jitter(t, host), memory=0.34, read=read, write=2e6, received=0.1 * read)
    )


def _checkpoint(t: float, seed: int, seconds: float) -> Load:
    gpu = GpuLoad(
        utilization=0.13 + 0.05 * jitter(t, seed),
        memory=0.78 + 0.05 * scatter(3, seed),
        sm=0.06,
        dram=0.05,
        power=0.14,
        clock=0.97,
        pcie=0.55,
        throttle=0,
        # A heat sink takes longer to cool down than a checkpoint takes to write.
        temperature_celsius=60 - 0.35 * seconds + seed % 4,
        processes=1,
    )
    host = HostLoad(
        cpu=0.12, iowait=0.05, io_pressure=0.06, memory=0.52, read=1e6, write=1.6e9 + 3e8 * jitter(t, seed >> 8)
    )
    return Load(gpu, host)


def starved(t: float, seed: int) -> Load:
    """A sawtooth: the GPUs empty the prefetch queue and wait for the disk, which reads at its limit."""
    host = seed >> 8
    tooth = ((t + 7 * scatter(4, host)) % 38) / 38
    level = clamp(0.14 + 0.4 * tooth + 0.04 * jitter(t, seed), 0, 1)
    gpu = GpuLoad(
        utilization=level,
        memory=0.78 + 0.02 * scatter(3, seed),
        sm=0.72 * level,
        tensor=0.38 * level,
        dram=0.35 * level,
        power=0.6 * level,
        clock=0.97,
        pcie=0.3 * level,
        nvlink=0.2 * level,
        throttle=0,
        temperature_celsius=44 + seed % 5 + 2 * drift(t, seed, 90),
        processes=1,
    )
    waits = 0.58 + 0.07 * jitter(t, host)
    return Load(
        gpu,
        HostLoad(
            cpu=0.2, iowait=waits, io_pressure=waits + 0.1, memory=0.61, read=1.9e9 + 6e7 * jitter(t, host + 1), write=1e6,
            read_latency_seconds=0.021, received=1.95e9, sent=4e7,
        ),
    )  # fmt: skip


def serving(t: float, seed: int) -> Load:
    """Requests by the hour of the day, in bursts; weights and KV cache keep the memory full throughout."""
    host = seed >> 8
    by_day = 0.45 + 0.3 * sin(2 * pi * (t / DAY + 0.1))
    burst = 0.35 if scatter(int(t // 75), host) > 0.82 else 0.0
    level = clamp(by_day * (0.4 + 0.8 * drift(t, seed, 180)) + burst + 0.05 * jitter(t, seed), 0.07, 1)
    gpu = GpuLoad(
        utilization=level,
        memory=0.88 + 0.01 * scatter(3, seed),
        sm=0.55 * level,
        tensor=0.2 * level,
        dram=0.62 * level,
        power=0.66 * level,
        clock=0.98,
        pcie=0.04 * level,
        nvlink=0.06 * level,
        throttle=0,
        processes=1,
    )
    return Load(gpu, HostLoad(cpu=0.04 + 0.1 * level, memory=0.22, received=2e6 * level, sent=7e6 * level))


def forgotten_notebook(t: float, seed: int) -> Load:
    """Somebody worked, went home, and left the model in memory."""
    left_at = -(1.5 + 6 * scatter(5, seed >> 8)) * HOUR
    if t < left_at:
        return notebook(t, seed)
    gpu = GpuLoad(memory=0.35 + 0.33 * scatter(3, seed), power=0.05, clock=0.2, processes=1)
    return Load(gpu, HostLoad(memory=0.18, kernels=1, kernel_idle_seconds=t - left_at))


def notebook(t: float, seed: int) -> Load:
    """Cells that run for some minutes, and somebody reading in between."""
    host = seed >> 8
    runs = scatter(int(t // (4 * MINUTE)), seed) > 0.35
    level = clamp(0.3 + 0.6 * drift(t, seed, 60) + 0.08 * jitter(t, seed), 0.06, 1) if runs else 0.0
    gpu = GpuLoad(
        utilization=level,
        memory=0.35 + 0.33 * scatter(3, seed),
        sm=0.6 * level,
        tensor=0.25 * level,
        dram=0.3 * level,
        power=0.05 + 0.6 * level,
        clock=0.97 if runs else 0.3,
        pcie=0.1 * level,
        throttle=0 if runs else GPU_IDLE,
        processes=1,
    )
    idle = 0.0 if runs else t % (4 * MINUTE)
    load = HostLoad(
        cpu=0.03 + 0.1 * level, memory=0.2, ssh_sessions=1, kernels=1, busy_kernels=int(runs), kernel_idle_seconds=idle
    )
    return Load(gpu, replace(load, read=5e6 * drift(t, host, 90)))


def free(t: float, seed: int) -> Load:
    """A job ended some hours ago and nothing has asked for the GPU since."""
    ended_at = -(3 + 17 * scatter(6, seed >> 8)) * HOUR
    if t < ended_at:
        return training(t, seed)
    return Load(GpuLoad(memory=0.004), HostLoad())


def noisy_neighbour(t: float, seed: int) -> Load:
    """Training on a shared host: whenever somebody else's work takes the disk and the cores, every step gets longer.

    They come for five hours of every nine, and are there when the sandbox is born.
    """
    host = seed >> 8
    load = training(t, seed)
    there = (t / HOUR + 4) % 9 < 5
    theirs = clamp((drift(t, host + 5, 11 * MINUTE) - 0.2) * 1.8, 0, 1) if there else 0.0
    if theirs == 0 or load.gpu.utilization < 0.5:
        return load
    slowed = 1 - theirs * (0.42 + 0.08 * jitter(t, seed + 6))
    gpu = load.gpu
    slower = replace(
        gpu, utilization=gpu.utilization * slowed, sm=gpu.sm * slowed, power=gpu.power * slowed, throttle=0
    )
    crowded = replace(
        load.host, cpu=load.host.cpu * slowed, cpu_pressure=0.35 * theirs, iowait=0.02 + 0.14 * theirs, io_pressure=0.3 * theirs,
        read=load.host.read + 1.1e9 * theirs, read_latency_seconds=0.0006 + 0.019 * theirs,
    )  # fmt: skip
    return Load(slower, crowded)


def throttling(t: float, seed: int) -> Load:
    """Full load in bad air: the card heats up, the driver slows its clock, it cools a little, and again."""
    load = training(t, seed)
    heat = ((t + 400 * scatter(7, seed)) % 420) / 420
    slowed = 0.97 - 0.34 * heat
    reasons = (SW_THERMAL if heat > 0.2 else SW_POWER_CAP) | (HW_THERMAL if heat > 0.85 else 0)
    gpu = replace(
        load.gpu, clock=slowed, power=load.gpu.power * slowed, throttle=reasons,
        temperature_celsius=82 + 7 * heat + jitter(t, seed + 8),
    )  # fmt: skip
    return Load(gpu, load.host)


def stalled(t: float, seed: int) -> Load:
    """One rank is gone and the others wait for it inside a collective: 100 % busy by the counter, no work, power near rest."""
    if t < -47 * MINUTE:
        return training(t, seed)
    gpu = GpuLoad(
        utilization=1.0, memory=0.78 + 0.05 * scatter(3, seed), sm=0.004, power=0.055 + 0.01 * jitter(t, seed), clock=0.98,
        throttle=0, processes=1,
    )  # fmt: skip
    return Load(gpu, HostLoad(cpu=0.13, memory=0.34))


LOST_AT = -37 * MINUTE


def falls_off_the_bus(t: float, seed: int) -> Load:
    """Works until XID 79; from then on the driver names the GPU and reads nothing of it."""
    return training(t, seed) if t < LOST_AT else Load(GpuLoad(lost=True), HostLoad())


def combined(hosts: Iterable[HostLoad]) -> HostLoad:
    """One machine under several kinds of work: rates and cores add up, waiting is that of the worst."""
    loads = list(hosts)
    worst = max(loads, key=lambda load: load.iowait)
    notebooks = [load.kernel_idle_seconds for load in loads if load.kernel_idle_seconds is not None]
    return HostLoad(
        cpu=min(sum(load.cpu for load in loads), 0.99 - worst.iowait),
        iowait=worst.iowait,
        cpu_pressure=max(load.cpu_pressure for load in loads),
        io_pressure=worst.io_pressure,
        memory=min(sum(load.memory for load in loads), 0.95),
        read=sum(load.read for load in loads),
        write=sum(load.write for load in loads),
        read_latency_seconds=max(load.read_latency_seconds for load in loads),
        received=sum(load.received for load in loads),
        sent=sum(load.sent for load in loads),
        ssh_sessions=max(load.ssh_sessions for load in loads),
        kernels=sum(load.kernels for load in loads),
        busy_kernels=sum(load.busy_kernels for load in loads),
        kernel_idle_seconds=min(notebooks, default=None),
    )
