"""A rank that died while the machine had memory left: ended from outside, or by a fault of native code. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import matches, numbers_of

FAILED = re.compile(r"failed \(exitcode: -(?P<signal>\d+)\) local_rank: (?P<rank>\d+)")
ROOT = re.compile(r"\brank\s*: (?P<rank>\d+) \(local_rank: \d+\)")
SIGNALLED = re.compile(r"Signal (?P<signal>\d+) \(SIG\w+\) received by PID")
NAMES = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


def look(evidence: Evidence) -> Iterator[Finding]:
    """The launcher names the first that failed: the others only lost it."""
    hits = [*matches(evidence.lines, FAILED), *matches(evidence.lines, SIGNALLED)]
    if not hits or evidence.stopped:
        return
    line, said = hits[0]
    signal = int(said["signal"])
    if signal == 15 or evidence.exit_code == 0:
        return
    rank = said["rank"] if "rank" in said.re.groupindex else _root(evidence)
    because = (
        Reason("rank_died", {"rank": rank, "signal": NAMES.get(signal, str(signal))}) if rank else Reason("killed")
    )
    outside = remedies("who_killed", "resume") if signal == 9 else remedies("native_fault", "look_at_log", "resume")
    yield Finding(
        "rank_died", Sure.CERTAIN, (because,), outside, numbers_of(one for one, _found in hits), since=line.at
    )


def _root(evidence: Evidence) -> str:
    hit = next(matches(evidence.lines, ROOT), None)
    return hit[1]["rank"] if hit else ""
