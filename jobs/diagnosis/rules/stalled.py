"""A run that stands: a rank that is gone while the others wait for it in a collective, or a deadlock. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, GpuEvidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import matches, numbers_of

SAYS_SO = re.compile(
    r"Watchdog caught collective operation timeout|NCCL watchdog thread terminated|ProcessGroupNCCL's watchdog got stuck|ncclRemoteError|Connection closed by (?:remote )?peer|"
    r"\[Rank \d+\].*(?:timed out|collective).*(?:aborting|timeout)|[Gg]loo.*(?:Connection reset by peer|[Tt]imed out|Connection closed)|ncclSystemError|ncclInternalError|"
    r"Socket Timeout|wait timeout after \d+ms|monitoredBarrier|exceeded timeout\(ms\)"
)
LOST_RANK = re.compile(
    r"local_rank: (\d+)|Root Cause \(first observed failure\)|failed \(exitcode: (-?\d+)\) local_rank: (\d+)|Sending process \d+ closing signal"
)
# As in states.py: busy by the counter at the power of rest.
BUSY, POWER_RATIO, SM = 95.0, 0.35, 0.02
LOOKS_BACK = 300.0
# So many of its usual steps without one.
STEPS_MISSED = 10
SHORTEST = 180.0


def look(evidence: Evidence) -> Iterator[Finding]:
    said = [line for line, _found in matches(evidence.lines, SAYS_SO)]
    waiting = tuple(gpu.index for gpu in evidence.gpus if _waits(gpu))
    late = _late(evidence)
    if said:
        ranks = sorted(
            {int(found[1] or found[3]) for _line, found in matches(evidence.lines, LOST_RANK) if found[1] or found[3]}
        )
        because = (*((Reason("lost_rank", {"rank": ranks[0]}),) if ranks else ()), Reason("collective_timeout"))
        what = remedies("first_failed_rank", "resume", "network_check", "longer_timeout")
        yield Finding("stalled", Sure.CERTAIN, because, what, numbers_of(said), waiting, said[0].at)
    elif not evidence.is_over and waiting and (late or evidence.kind is not Kind.TRAINING):
        because = (Reason("busy_at_rest", {"gpus": len(waiting)}), *late)
        what = remedies("stacks", "restart_from_checkpoint", "network_check")
        yield Finding("stalled", Sure.LIKELY, because, what, gpus=waiting)
    elif not evidence.is_over and late and evidence.kind is Kind.TRAINING:
        yield Finding("no_steps", Sure.POSSIBLE, late, remedies("stacks", "look_at_log"))


def _waits(gpu: GpuEvidence) -> bool:
    """The last five minutes through: 100 % by the counter, and nothing computed."""
    if not gpu.utilization_percent:
        return False
    begin = gpu.utilization_percent.points[-1][0] - LOOKS_BACK
    busy = gpu.utilization_percent.since(begin)
    if busy.seconds < LOOKS_BACK * 0.8 or busy.share(at_least=BUSY) != 1.0:
        return False
    if computes := gpu.sm_activity.since(begin):
        return max(computes.values) < SM
    power = gpu.power_watts.since(begin)
    return (
        bool(power) and bool(gpu.power_limit_watts) and max(power.values) < POWER_RATIO * (gpu.power_limit_watts or 0)
    )


def _late(evidence: Evidence) -> tuple[Reason, ...]:
    """No step for ten times what one takes: a long evaluation or checkpoint is shorter than that."""
    steps, now = evidence.steps, evidence.now
    usual = steps.middle
    if usual is None or now is None:
        return ()
    quiet = now - max(at for at, _point in evidence.points)
    between = max((after - before for (before, _a), (after, _b) in itertools.pairwise(evidence.points)), default=0.0)
    # Whoever prints every hundredth step is silent for that long as a rule.
    if quiet < max(SHORTEST, STEPS_MISSED * usual, 2 * between):
        return ()
    return (Reason("no_step", {"seconds": round(quiet), "usual": round(usual, 2)}),)
