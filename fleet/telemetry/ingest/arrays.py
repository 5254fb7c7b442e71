"""PostgreSQL arrays in binary form, made column by column.

psycopg adapts list elements one at a time in Python; for thousands of readings a second that was the largest cost of ingest
(docs/performance.md). Format: https://www.postgresql.org/docs/current/arrays.html and src/backend/utils/adt/arrayfuncs.c (array_recv).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import adapt, pq
from psycopg.abc import AdaptContext

_HEADER = struct.Struct(">iiIii")
_NULL = b"\xff\xff\xff\xff"


def _fixed(code: str) -> Callable[[Any], bytes]:
    layout = struct.Struct(f">i{code}")
    size = layout.size - 4
    return lambda value: layout.pack(size, value)


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


@dataclass(frozen=True, slots=True)
class ArrayType:
    """One element type: its OID, its array's OID, and how one value is written."""

    name: str
    element_oid: int
    array_oid: int
    write: Callable[[Any], bytes]


FLOAT8 = ArrayType("float8", 701, 1022, _fixed("d"))
INT8 = ArrayType("int8", 20, 1016, _fixed("q"))
INT4 = ArrayType("int4", 23, 1007, _fixed("i"))
BOOL = ArrayType("bool", 16, 1000, _fixed("?"))
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


def array(kind: ArrayType, values: Iterable[Any]) -> Any:
    """A query parameter: the values as one array of `kind`; None becomes NULL."""
    write = kind.write
    items = [_NULL if value is None else write(value) for value in values]
    header = _HEADER.pack(1, 1, kind.element_oid, len(items), 1)
    return _CLASSES[kind](header + b"".join(items))


def register(context: AdaptContext) -> None:
    assert context.adapters is not None
    for kind in TYPES:
        context.adapters.register_dumper(_CLASSES[kind], _DUMPERS[kind])
