"""Values of a pasted JSON object, checked: every fault names the field, what is there and what would do."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from planner.reasons import Reason, reason

LONGEST_TEXT = 1_000_000
# A value is shown in messages, and may be anything.
LONGEST_SHOWN = 40


class ConfigError(ValueError):
    """The text does not describe a model; `reason` says which field, and what would do."""

    def __init__(self, why: Reason) -> None:
        super().__init__(f"{why.key} {dict(why.values)}")
        self.reason = why


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object. Names are tried in turn; null counts as absent."""

    values: Mapping[str, Any]

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def within(self, name: str) -> Fields:
        """The object in a field, or an empty one."""
        inner = self.values.get(name)
        if inner is None:
            return Fields({})
        if not isinstance(inner, dict):
            self.fail("shape.not_object", name)
        return Fields(inner)

    def whole(self, *names: str, most: int, least: int = 1) -> int:
        number = self.whole_or_none(*names, most=most, least=least)
        if number is None:
            raise ConfigError(reason("shape.missing", field=names[0]))
        return number

    def whole_or_none(self, *names: str, most: int, least: int = 1) -> int | None:
        name = next((name for name in names if self.has(name)), None)
        return None if name is None else self._checked(name, least, most)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, bool):
            self.fail("shape.not_flag", name)
        return value

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def fail(self, key: str, name: str, **more: str | int) -> NoReturn:
        raise ConfigError(reason(key, field=name, value=_shown(self.values.get(name)), **more))

    def _checked(self, name: str, least: int, most: int) -> int:
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail("shape.not_number", name)
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            self.fail("shape.not_whole", name)
        if not least <= value <= most:
            self.fail("shape.out_of_range", name, least=least, most=most)
        return int(value)


def parse_object(text: str) -> Fields:
    """The object that a text holds. Raises ConfigError for text that is no JSON, too long, too deep, or no object."""
    if len(text) > LONGEST_TEXT:
        raise ConfigError(reason("shape.too_long", most=LONGEST_TEXT))
    try:
        # Editors on Windows begin a file with a byte order mark.
        parsed = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise ConfigError(reason("shape.not_json", line=error.lineno, column=error.colno)) from None
    except (RecursionError, ValueError):
        # A number of thousands of digits, or brackets without an end.
        raise ConfigError(reason("shape.unreadable")) from None
    if not isinstance(parsed, dict):
        raise ConfigError(reason("shape.no_object"))
    return Fields(parsed)


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**LONGEST_SHOWN:
        return "10^" + str(round(math.log10(abs(value))))
    shown = type(value).__name__ if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 1] + "…"
