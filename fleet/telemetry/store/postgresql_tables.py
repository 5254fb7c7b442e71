"""What a stretch of time is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psycopg import sql

from fleet.telemetry.packed.read import packed_samples
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.spans import Segment


def tables_of(
    segment: Segment, kind: str, key: str, ids: Sequence[int], fields: Sequence[str]
) -> Iterator[sql.Composable]:
    """A sample lies either in the table of samples or, in time, in a packed hour: both together are all there are."""
    if segment.resolution != RAW:
        yield sql.Identifier(f"{kind}_rollup_{segment.resolution.name}")
        return
    yield sql.Identifier(f"{kind}_sample")
    names = list(dict.fromkeys(fields))
    packed = packed_samples(kind=kind, key=key, ids=ids, names=names, since=segment.since, until=segment.until)
    if packed is not None:
        yield packed
