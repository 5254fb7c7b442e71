"""Whether another attempt follows the end of one, and after how long. Pure.

Retries are for runs that failed, a restart policy is for servers, which are to answer whatever they ended with. Restarts in a row wait longer and
longer; one that ran for long enough begins the count anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

STEADY = timedelta(hours=1)
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=10), timedelta(minutes=10)
# What another attempt may mend.
RETRIED = frozenset({"failed", "lost"})
# What it cannot: the machine is not as it has to be, or is none any more.
HOPELESS = frozenset({"not_prepared", "no_way", "environment", "machine_gone"})
AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended. `ran`: from its start to its end, zero where it never started."""

    state: str
    why: str
    ran: timedelta


@dataclass(frozen=True, slots=True)
class Policy:
    """`retries` of the whole job; `most_restarts` in a row, None = its order asks for none."""

    retries: int = 0
    most_restarts: int | None = None


def wait_before_next(ended: Sequence[Ended], policy: Policy) -> timedelta | None:
    """`ended`: all attempts, the first first. None: there is no other one."""
    last = ended[-1]
    if last.why == "restart":
        return AT_ONCE
    if last.why in HOPELESS or last.state == "stopped":
        return None
    if policy.most_restarts is not None:
        row = in_a_row(ended)
        return min(LONGEST_WAIT, FIRST_WAIT * (1 << min(row, 10))) if row < policy.most_restarts else None
    tried = sum(1 for one in ended if one.why != "restart")
    return AT_ONCE if last.state in RETRIED and tried <= policy.retries else None


def in_a_row(ended: Sequence[Ended]) -> int:
    """How many of the last attempts were begun by the policy and did not run for long; one that a person began is none of them."""
    count = 0
    for before, one in zip(reversed(ended[:-1]), reversed(ended), strict=False):
        if one.ran >= STEADY or before.why == "restart":
            break
        count += 1
    return count
