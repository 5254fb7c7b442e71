"""Ranks that do not find each other as a run begins: a closed port, a wrong address, a port that is taken. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import first, matches, numbers_of

UNREACHED = re.compile(
    r"client socket has timed out.*connect to [\[(]?(?P<place>[^\s,;)\]]+(?:, ?\d+)?)"
    r"|RendezvousConnectionError|RendezvousTimeoutError|DistNetworkError|Timed out waiting for clients|Call to (?:connect|ibv_\w+).*(?:timed out|refused|No route to host)"
)
TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|server socket has failed to listen")


def look(evidence: Evidence) -> Iterator[Finding]:
    """Before the first step only: later it is a rank that was lost."""
    if any(point.step for _at, point in evidence.points):
        return
    if (taken := first(evidence.lines, TAKEN)) is not None:
        what = remedies("free_port", "other_port")
        yield Finding("port_taken", Sure.CERTAIN, (), what, numbers_of([taken[0]]), since=taken[0].at)
        return
    hits = list(matches(evidence.lines, UNREACHED))
    if not hits:
        return
    place = next((found["place"] for _line, found in hits if found["place"]), "")
    because = (Reason("unreached", {"place": place[:80]}),) if place else ()
    what = remedies("open_port", "network_check", "same_begin")
    lines = numbers_of(line for line, _found in hits)
    yield Finding("no_rendezvous", Sure.CERTAIN, because, what, lines, since=hits[0][0].at)
