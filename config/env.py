"""Settings come from the environment; a value that cannot be understood stops the start and says which one.

A secret NAME may instead lie in a file whose path is in NAME_FILE.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off", ""}


def env_str(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def env_bool(name: str, default: bool) -> bool:
    word = os.environ.get(name)
    if word is None:
        return default
    if word.strip().lower() in TRUE_WORDS:
        return True
    if word.strip().lower() in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} is {word!r}; write 1 or 0.")


def env_int(name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
    word = env_str(name)
    if not word:
        return default
    try:
        value = int(word)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {word!r}; write a whole number.") from None
    if (low is not None and value < low) or (high is not None and value > high):
        raise ImproperlyConfigured(f"{name} is {value}; it must lie between {low} and {high}.")
    return value


def env_rate(name: str, default: str) -> str:
    """How often something may happen: `600/minute`."""
    value = env_str(name, default) or default
    if not re.fullmatch(r"[1-9][0-9]*/(second|minute|hour|day)", value):
        raise ImproperlyConfigured(f"{name} is {value!r}; write it as 600/minute (second, minute, hour or day).")
    return value


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env_str(name, default).split(",") if part.strip()]


def env_secret(name: str, default: str = "") -> str:
    """The secret itself, or the contents of the file that NAME_FILE points to; both set is an error."""
    value, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and path:
        raise ImproperlyConfigured(f"Both {name} and {name}_FILE are set; keep one.")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error.strerror}: {path}") from None
    return value or default
