"""When an operation is looked at again, and when it is sent again. Pure. There is no last time."""

from __future__ import annotations

from datetime import timedelta

FIRST = timedelta(seconds=3)
LONGEST = timedelta(minutes=10)
# Of the time since the last call: a stop that takes a minute is seen within seconds, one that takes a day every ten minutes.
SHARE = 0.1
MAX_RETRY_AFTER = timedelta(hours=1)
# How many times longer a passing state may last than a state in which nothing happens.
PASSING_TIMES = 10
MAX_DOUBLINGS = 4


def until_next_read(since_sent: timedelta, failed_reads: int = 0) -> timedelta:
    """Readings that fail are farther and farther apart, and never farther than the longest."""
    wait: timedelta = max(FIRST, since_sent * SHARE) * int(2 ** min(failed_reads, 8))
    return min(wait, LONGEST)


def asked_to_wait(retry_after: float | None, since_sent: timedelta, failed: int) -> timedelta:
    """At least as long as the provider asks, up to an hour: a machine that costs money is not left alone for a day."""
    own = until_next_read(since_sent, failed)
    return own if retry_after is None else max(own, min(timedelta(seconds=max(retry_after, 0.0)), MAX_RETRY_AFTER))


def is_forgotten(since_sent: timedelta, *, settle_seconds: int, attempts: int, moving: bool) -> bool:
    """Whether so much time has passed since the last call that nothing can come of it any more."""
    patience = timedelta(seconds=settle_seconds) * int(2 ** min(max(attempts - 1, 0), MAX_DOUBLINGS))
    return since_sent >= (patience * PASSING_TIMES if moving else patience)
