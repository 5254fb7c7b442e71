"""Everything that the rules find of a run, the surest and most telling first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Sure
from jobs.diagnosis.rules import (
    api_timeouts,
    dead_rank,
    disk_full,
    gpu_fault,
    host_memory,
    kv_cache_small,
    loads_each_request,
    memory_leak,
    no_rendezvous,
    noisy_neighbour,
    not_a_number,
    oom_serving,
    oom_training,
    preempted,
    slow_training,
    stalled,
    symptoms,
    throttled,
    wrong_device,
)

Rule = Callable[[Evidence], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    gpu_fault.look,
    preempted.look,
    oom_training.look,
    oom_serving.look,
    host_memory.look,
    disk_full.look,
    symptoms.look,
    wrong_device.look,
    no_rendezvous.look,
    stalled.look,
    dead_rank.look,
    not_a_number.look,
    throttled.look,
    noisy_neighbour.look,
    slow_training.look,
    loads_each_request.look,
    kv_cache_small.look,
    memory_leak.look,
    api_timeouts.look,
)
_ORDER = {Sure.CERTAIN: 0, Sure.LIKELY: 1, Sure.POSSIBLE: 2}
# What follows from another finding is no news beside it: a rank that ran out of memory leaves the others waiting.
FOLLOWS = {
    "stalled": (
        "oom_",
        "gpu_fault",
        "gpu_program",
        "host_memory",
        "disk_full",
        "shared_memory_full",
        "versions",
        "preempted",
    ),
    "rank_died": (
        "oom_",
        "gpu_fault",
        "gpu_program",
        "host_memory",
        "shared_memory_full",
        "stalled",
        "versions",
        "preempted",
    ),
    "no_steps": ("oom_", "gpu_fault", "host_memory", "stalled"),
    "no_rendezvous": ("oom_", "host_memory", "port_taken", "versions", "disk_full"),
    "gpu_program": ("oom_",),
    "data_starved": ("throttled_heat",),
    "slower_than_planned": ("throttled_heat", "throttled_power", "noisy_neighbour"),
    "small_work": ("wrong_device",),
    "host_memory": ("oom_", "preempted", "machine_ended", "shared_memory_full"),
    "computing": ("kv_cache_small", "loads_each_request"),
    "synchronous": ("loads_each_request",),
    "queueing": ("loads_each_request",),
    "tail_latency": ("loads_each_request",),
    "kv_cache_small": ("oom_",),
}


def diagnose(evidence: Evidence) -> list[Finding]:
    """Sorted by how sure they are, then in the order of the rules."""
    found = [finding for rule in RULES for finding in rule(evidence)]
    codes = [finding.code for finding in found]
    kept = [finding for finding in found if not _follows(finding.code, codes)]
    return sorted(kept, key=lambda finding: _ORDER[finding.sure])


def _follows(code: str, codes: list[str]) -> bool:
    return any(other != code and other.startswith(FOLLOWS.get(code, ())) for other in codes)
