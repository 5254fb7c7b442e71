"""PostgreSQL arrays in binary form, made column by column.

psycopg adapts list elements one at a time in Python; for thousands of readings a second that was the largest cost of ingest
(docs/performance.md). Format: https://www.postgresql.org/docs/current/arrays.html and src/backend/utils/adt/arrayfuncs.c (array_recv).
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import adapt, pq
from psycopg.abc import AdaptContext

_HEADER = struct.Struct(">iiIii")
_NULL = b"\xff\xff\xff\xff"


def _fixed(code: str) -> Callable[[Sequence[Any]], bytes]:
    one = struct.Struct(f">i{code}")
    size = one.size - 4

    def write(values: Sequence[Any]) -> bytes:
        if None in values:
            return b"".join([_NULL if value is None else one.pack(size, value) for value in values])
        return _interleaved(array(code, values), size)

    return write


def _interleaved(values: array[Any], size: int) -> bytes:
    """Each value behind its length, big-endian: whole byte columns at a time, more than twice as fast as value by value."""
    if sys.byteorder == "little":
        values.byteswap()
    data, stride = values.tobytes(), size + 4
    out = bytearray(stride * len(values))
    out[3::stride] = bytes([size]) * len(values)
    for position in range(size):
        out[4 + position :: stride] = data[position::size]
    return bytes(out)


def _text(values: Sequence[str | bytes | None]) -> bytes:
    return b"".join([_NULL if value is None else _text_item(value) for value in values])


def _text_item(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(4) + data


@dataclass(frozen=True, slots=True)
class ArrayType:
    """One element type: its OID, its array's OID, and how values are written one behind the other."""

    name: str
    element_oid: int
    array_oid: int
    write: Callable[[Sequence[Any]], bytes]


FLOAT8 = ArrayType("float8", 701, 1022, _fixed("d"))
INT8 = ArrayType("int8", 20, 1016, _fixed("q"))
INT4 = ArrayType("int4", 23, 1007, _fixed("i"))
BOOL = ArrayType("bool", 16, 1000, _fixed("b"))
TEXT = ArrayType("text", 25, 1009, _text)
TYPES = (FLOAT8, INT8, INT4, BOOL, TEXT)


class _Array:
    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _ArrayDumper(adapt.Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj.data
        return data


# psycopg finds the dumper, and with it the OID, by the class of the parameter.
_CLASSES = {kind: type(f"{kind.name.title()}Array", (_Array,), {"__slots__": ()}) for kind in TYPES}
_DUMPERS = {kind: type(f"{kind.name.title()}Dumper", (_ArrayDumper,), {"oid": kind.array_oid}) for kind in TYPES}


def column(kind: ArrayType, values: Sequence[Any]) -> Any:
    """A query parameter: the values as one array of `kind`; None becomes NULL."""
    header = _HEADER.pack(1, 1, kind.element_oid, len(values), 1)
    return _CLASSES[kind](header + kind.write(values))


def register(context: AdaptContext) -> None:
    assert context.adapters is not None
    for kind in TYPES:
        context.adapters.register_dumper(_CLASSES[kind], _DUMPERS[kind])
