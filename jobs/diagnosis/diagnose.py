"""Everything that the rules find of a run, the surest and most telling first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Sure
from jobs.diagnosis.rules import (
    api_timeouts,
    disk_full,
    faults,
    host_memory,
    memory_leak,
    not_a_number,
    oom_serving,
    oom_training,
    slow_training,
    stalled,
    symptoms,
    throttled,
    wrong_device,
)

Rule = Callable[[Evidence], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    faults.look,
    oom_training.look,
    oom_serving.look,
    host_memory.look,
    disk_full.look,
    symptoms.look,
    wrong_device.look,
    stalled.look,
    not_a_number.look,
    throttled.look,
    slow_training.look,
    memory_leak.look,
    api_timeouts.look,
)
_ORDER = {Sure.CERTAIN: 0, Sure.LIKELY: 1, Sure.POSSIBLE: 2}
# What follows from another finding is no news beside it: a rank that ran out of memory leaves the others waiting.
FOLLOWS = {
    "stalled": ("oom_", "gpu_fault", "host_memory", "disk_full", "shared_memory_full", "versions", "preempted"),
    "no_steps": ("oom_", "gpu_fault", "host_memory", "stalled"),
    "gpu_program": ("oom_",),
    "data_starved": ("throttled_heat",),
    "slower_than_planned": ("throttled_heat", "throttled_power", "noisy_neighbour"),
    "small_work": ("wrong_device",),
    "host_memory": ("oom_", "preempted", "machine_ended"),
    "computing": ("kv_cache_small",),
}


def diagnose(evidence: Evidence) -> list[Finding]:
    """Sorted by how sure they are, then in the order of the rules."""
    found = [finding for rule in RULES for finding in rule(evidence)]
    codes = [finding.code for finding in found]
    kept = [finding for finding in found if not _follows(finding.code, codes)]
    return sorted(kept, key=lambda finding: _ORDER[finding.sure])


def _follows(code: str, codes: list[str]) -> bool:
    return any(other != code and other.startswith(FOLLOWS.get(code, ())) for other in codes)
