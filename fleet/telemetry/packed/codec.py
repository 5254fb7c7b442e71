"""An hour of samples as bytes, and back. Pure: no Django, no clock.

    hour     = version, LZMA(number of samples, section …)
    section  = code of the field, flags, length of the rest, [mask of the known values], body
    numbers  = [first value, where steps are kept], lowest, divisor, (value or step - lowest) / divisor as byte planes

A plane holds the lowest bytes of all numbers, the next one the bytes above: what hardly moves is then a run of zeros. Whether values or the
steps between them are kept is decided by which of them are more predictable. Integers are LEB128, signed ones in zigzag.
"""

from __future__ import annotations

import json
import lzma
import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from fleet.telemetry.packed.fields import Exact, Field, Precision

VERSION = 1
# Its coder adapts itself to each plane within some dozen bytes, without a table in front: an eighth smaller than zstd at its best.
FILTERS = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16, "lc": 0, "lp": 0, "pb": 0}]
WIDTH, STEPS, MASKED, FLOATS = 0x0F, 0x10, 0x20, 0x40
# No reading comes near it; what does, an infinity among them, is kept as the float that it is.
LARGEST_ROUNDED = 1e15
# Steps between larger numbers could need more than 64 bits.
LARGEST_STEPPED = 1 << 62
# PostgreSQL moves what is too long for a row out of it in chunks of this size, four to a page; a row that stays below the other size is left alone.
CHUNK_BYTES, MOST_INLINE_BYTES = 1_996, 1_900

Columns = Mapping[str, Sequence[Any]]


class PackedError(ValueError):
    """Bytes that this release cannot read, or a reading that it has no field for."""


def pack_hour(columns: Columns, fields: Mapping[str, Field]) -> bytes:
    """Columns of equal length, one value a sample, None where nothing was read. Raises PackedError for a column that `fields` lacks."""
    if unknown := sorted(set(columns) - set(fields)):
        raise PackedError(f"{', '.join(unknown)}: packed hours have no field for it")
    count = len(next(iter(columns.values()), ()))
    sections = (_section(fields[name], values) for name, values in columns.items())
    # Alike beside alike, for the coder's sake.
    body = _unsigned(count) + b"".join(section for _, section in sorted(sections))
    return bytes([VERSION]) + lzma.compress(body, format=lzma.FORMAT_RAW, filters=FILTERS)


def unpack_hour(
    payload: bytes, fields: Mapping[str, Field], names: Collection[str] | None = None
) -> dict[str, Sequence[Any]]:
    """The columns called `names` (all unless told); one that was never read is all None. Raises PackedError."""
    if payload[0] != VERSION:
        raise PackedError(f"version {payload[0]} of packed hours is not known to this release")
    reader = _Reader(lzma.decompress(payload[1:], format=lzma.FORMAT_RAW, filters=FILTERS))
    count = reader.unsigned()
    wanted = {field.code: name for name, field in fields.items() if names is None or name in names}
    found: dict[str, Sequence[Any]] = {name: [None] * count for name in wanted.values()}
    while reader.left:
        code, flags = reader.take(1)[0], reader.take(1)[0]
        section = reader.take(reader.unsigned())
        if name := wanted.get(code):
            found[name] = _column(section, flags, fields[name].precision, count)
    return found


def split_payload(payload: bytes) -> tuple[bytes, bytes]:
    """What lies in the row, and what is moved out of it: whole chunks, because the rest of one leaves a part of its page empty."""
    inline = len(payload) if len(payload) <= MOST_INLINE_BYTES else len(payload) % CHUNK_BYTES
    if inline > MOST_INLINE_BYTES:
        inline = 0
    return payload[:inline], payload[inline:]


def _section(field: Field, values: Sequence[Any]) -> tuple[float, bytes]:
    """How unpredictable it is, in bits a value, and the section."""
    known = [value for value in values if value is not None]
    if not known:
        return 0.0, b""
    flags, mask = (MASKED, _mask(values)) if len(known) < len(values) else (0, b"")
    if field.precision is None:
        bits, kind, body = math.inf, 0, json.dumps(known, separators=(",", ":")).encode()
    else:
        bits, kind, body = _numbers(known, field.precision)
    rest = mask + body
    return bits, bytes([field.code, flags | kind]) + _unsigned(len(rest)) + rest


def _column(section: bytes, flags: int, precision: Precision | None, count: int) -> Sequence[Any]:
    present: list[bool] | None = None
    if flags & MASKED:
        size = -(-count // 8)
        present, section = _present(section[:size], count), section[size:]
    known = sum(present) if present is not None else count
    values = json.loads(section) if precision is None else _values(section, flags, precision, known)
    if present is None:
        return list(values)
    rest = iter(values)
    return [next(rest) if there else None for there in present]


def _mask(values: Sequence[Any]) -> bytes:
    bits = "".join("0" if value is None else "1" for value in reversed(values))
    return int(bits, 2).to_bytes(-(-len(values) // 8), "little")


def _present(mask: bytes, count: int) -> list[bool]:
    bits = f"{int.from_bytes(mask, 'little'):0{count}b}"
    return [bit == "1" for bit in reversed(bits)]


def _numbers(known: Sequence[float], precision: Precision) -> tuple[float, int, bytes]:
    """Bits a value, flags and body."""
    if not isinstance(precision, Exact) and not all(abs(value) < LARGEST_ROUNDED for value in known):
        return math.inf, FLOATS, _planes(array("d", known).tobytes(), 8, 8)
    wholes = precision.wholes(known)
    plain = _Wholes.of(wholes)
    if len(wholes) > 1 and max(map(abs, wholes)) < LARGEST_STEPPED:
        steps = _Wholes.of([after - before for before, after in pairwise(wholes)])
        if steps.bits < plain.bits:
            return steps.bits, STEPS | steps.width, _signed(wholes[0]) + steps.body
    return plain.bits, plain.width, plain.body


def _values(section: bytes, flags: int, precision: Precision, count: int) -> Sequence[float]:
    if flags & FLOATS:
        return array("d", _rows(section, 8, 8))
    reader, width = _Reader(section), flags & WIDTH
    first = [reader.signed()] if flags & STEPS else []
    lowest, divisor = reader.signed(), reader.unsigned()
    if width:
        numbers = [number * divisor + lowest for number in array("Q", _rows(reader.rest, width, 8))]
    else:
        numbers = [lowest] * (count - len(first))
    return precision.values(list(accumulate(first + numbers)) if first else numbers)


@dataclass(frozen=True, slots=True)
class _Wholes:
    """`bits`: about what an entropy coder needs for each."""

    width: int
    body: bytes
    bits: float

    @classmethod
    def of(cls, wholes: Sequence[int]) -> _Wholes:
        lowest = min(wholes)
        above = [whole - lowest for whole in wholes]
        divisor = math.gcd(*above) or 1
        numbers = array("Q", [number // divisor for number in above] if divisor > 1 else above)
        width = -(-max(numbers).bit_length() // 8)
        planes = _planes(numbers.tobytes(), 8, width)
        bits = sum(_entropy(planes[start : start + len(wholes)]) for start in range(0, len(planes), len(wholes)))
        return cls(width, _signed(lowest) + _unsigned(divisor) + planes, bits)


def _planes(rows: bytes, size: int, width: int) -> bytes:
    return b"".join(rows[position::size] for position in range(width))


def _rows(planes: bytes, width: int, size: int) -> bytes:
    count = len(planes) // width
    rows = bytearray(count * size)
    for position in range(width):
        rows[position::size] = planes[position * count : (position + 1) * count]
    return bytes(rows)


def _entropy(data: bytes) -> float:
    return -sum(count * math.log2(count / len(data)) for count in Counter(data).values())


def _unsigned(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _signed(number: int) -> bytes:
    return _unsigned(number << 1 if number >= 0 else (-number << 1) - 1)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    @property
    def rest(self) -> bytes:
        return self._data[self._at :]

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def unsigned(self) -> int:
        number = shift = 0
        while (byte := self.take(1)[0]) > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def signed(self) -> int:
        number = self.unsigned()
        return number >> 1 if not number & 1 else -((number + 1) >> 1)
