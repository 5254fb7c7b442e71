"""From bytes to checked values: one strict pass, and a lenient one that drops single values where the strict one fails."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from fleet.telemetry.wire import MAX_STRING

T = TypeVar("T", bound=msgspec.Struct)


class BadJsonError(ValueError):
    """The body is no JSON object at all."""


class InvalidError(ValueError):
    """The body is JSON but not what the protocol says. `field` is the path of what is wrong, as in `samples[0].at`."""

    def __init__(self, detail: str, field: str) -> None:
        super().__init__(detail)
        self.detail, self.field = detail, field


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """`dropped`: field name -> how many of its values lay outside their physical range."""

    value: T
    dropped: Counter[str]


class Reader(Generic[T]):
    """Decodes one kind of body. Raises BadJsonError or InvalidError."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind
        self._strict = msgspec.json.Decoder(kind)

    def read(self, body: bytes) -> Decoded[T]:
        try:
            return Decoded(self._strict.decode(body), Counter())
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._read_leniently(body)

    def _read_leniently(self, body: bytes) -> Decoded[T]:
        data = _loads(body)
        dropped: Counter[str] = Counter()
        scrub(data, self.kind, dropped)
        try:
            return Decoded(msgspec.convert(data, self.kind), dropped)
        except msgspec.ValidationError as error:
            detail, _, path = str(error).partition(" - at ")
            raise InvalidError(f"{detail}. See docs/agent-protocol.md.", path.strip("`").lstrip("$.")) from None


def _loads(body: bytes) -> Any:
    try:
        # NaN and Infinity are no JSON but every second serializer writes them: they are values to drop, not a reason to lose the rest.
        data = json.loads(body, object_pairs_hook=_encodable)
    except (ValueError, RecursionError) as error:
        raise BadJsonError(f"The body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadJsonError("The body must be a JSON object.")
    return data


def _encodable(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON can escape half of a surrogate pair, which is no character and which nothing after this can encode."""
    return {_whole(name): _whole(value) if isinstance(value, str) else value for name, value in pairs}


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def scrub(data: Any, kind: type[msgspec.Struct], dropped: Counter[str]) -> None:
    """Remove from `data`, in place, every optional number outside the bounds that `kind` sets for it, and count it."""
    if not isinstance(data, dict):
        return
    for name, rule in _rules(kind).items():
        if data.get(name) is not None:
            rule(data, name, dropped)


Rule = Callable[[dict[str, Any], str, Counter[str]], None]


@cache
def _rules(kind: type[msgspec.Struct]) -> dict[str, Rule]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    found = {field.encode_name: _rule(field) for field in info.fields}
    return {name: rule for name, rule in found.items() if rule is not None}


def _rule(field: inspect.Field) -> Rule | None:
    options = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    for option in options:
        if isinstance(option, inspect.IntType | inspect.FloatType) and not field.required:
            return _number_rule(option)
        if isinstance(option, inspect.StructType):
            return _struct_rule(option.cls)
        if isinstance(option, inspect.ListType) and isinstance(option.item_type, inspect.StructType):
            return _list_rule(option.item_type.cls)
    return None


def _number_rule(bounds: inspect.IntType | inspect.FloatType) -> Rule:
    low = -math.inf if bounds.ge is None else bounds.ge
    high = math.inf if bounds.le is None else bounds.le
    below = math.inf if bounds.lt is None else bounds.lt
    whole = isinstance(bounds, inspect.IntType)

    def check(data: dict[str, Any], name: str, dropped: Counter[str]) -> None:
        value = data[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        # Bounds first: an integer of any length can be compared, but not made a float.
        if not low <= value <= high or value >= below or (isinstance(value, float) and not math.isfinite(value)):
            del data[name]
            dropped[name] += 1
        elif whole:
            data[name] = round(value)

    return check


def _struct_rule(kind: type[msgspec.Struct]) -> Rule:
    return lambda data, name, dropped: scrub(data[name], kind, dropped)


def _list_rule(kind: type[msgspec.Struct]) -> Rule:
    def check(data: dict[str, Any], name: str, dropped: Counter[str]) -> None:
        if isinstance(data[name], list):
            for item in data[name]:
                scrub(item, kind, dropped)

    return check


def clean(text: str | None, limit: int = MAX_STRING) -> str:
    """`text` without control, format and bidirectional characters and line ends, cut to `limit`: fit for a log, a terminal, a CSV cell.

    It is still hostile as HTML: templates escape it.
    """
    if not text:
        return ""
    text = text[:limit]
    return text if text.isprintable() else "".join(letter for letter in text if letter.isprintable())


def clean_map(pairs: dict[str, str] | None, limit: int = MAX_STRING) -> dict[str, str]:
    return {clean(key, 64): clean(value, limit) for key, value in (pairs or {}).items()}
