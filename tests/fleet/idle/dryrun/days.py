"""A machine's five minutes as a string: one sign a bucket, so that a day of a test can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from fleet.idle.dryrun.evidence import BUCKET, Bucket, Held, Known, Power
from fleet.idle.dryrun.quiet import History, Quiet, history_of
from fleet.idle.verdict.evidence import Mode
from fleet.idle.verdict.limits import Limits

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
LONG_AGO = MONDAY - timedelta(days=30)
LIMITS = Limits()
# A machine at rest: everything was read, and nothing of it shows use.
REST = Bucket(
    1, MONDAY, 4, 0, 1.0, 0.0, 0.001, 0.0, 0.001, 1.02, 1.0, 3.0, 20_000.0, 5_000.0, 0.0, 0.0
)  # fmt: skip
SIGNS: dict[str, dict[str, Any]] = {
    ".": {},
    "w": {"utilization_percent": 80.0},
    # Half of its samples came.
    "-": {"coverage": 0.5, "host_coverage": 0.5},
    # None came, though its GPUs are listed.
    "?": {"coverage": 0.0, "unread": 4, "utilization_percent": None, "sm_activity": None, "host_coverage": None},
    "s": {"ssh_sessions": 1.0},
    "d": {"disk_bytes_per_second": 90e6},
}


def buckets(signs: str, *, start: datetime = MONDAY, rest: Bucket = REST) -> Iterator[Bucket]:
    """A blank is a bucket without any record."""
    for number, sign in enumerate(signs):
        if sign != " ":
            yield replace(rest, at=start + number * BUCKET, **SIGNS[sign])


def known(
    *,
    gpus: int = 4,
    mode: Mode = Mode.INTERACTIVE,
    powers: Iterable[Power] = (Power(LONG_AGO, True, LONG_AGO),),
    holds: Iterable[Held] = (),
) -> Known:
    return Known(1, gpus, gpus, mode, tuple(powers), tuple(holds))


def history(signs: str, *, limits: Limits = LIMITS, rest: Bucket = REST, **told: Any) -> History:
    until = MONDAY + len(signs) * BUCKET
    return history_of(known(**told), buckets(signs, rest=rest), limits=limits, until=until)


def minutes(at: datetime) -> int:
    """Since Monday began."""
    return round((at - MONDAY).total_seconds() / 60)


def told(quiet: Quiet) -> tuple[int, int, str]:
    return minutes(quiet.start), minutes(quiet.end), quiet.ending.value


def quiet(signs: str, **given: Any) -> list[tuple[int, int, str]]:
    return [told(one) for one in history(signs, **given).quiet]
