"""Whether a line of a log says that something is wrong. Pure; a reader's filter, no diagnosis."""

from __future__ import annotations

import re

from jobs.logs.screen import without_escapes

__all__ = ["may_warn", "warns"]

# Longer lines say it at their beginning, or are no message.
LOOKS_AT = 2_000
# "error=0.02" and "errors: 0" are figures of a run, not a complaint.
_FIGURE = r"(?!\s*[=:]?\s*[-+]?\.?\d)"
_WORDS = re.compile(
    rf"\b(?:warn(?:ing)?|error|critical|fatal|exception|fail(?:ed|ure)|killed|panic|aborted){_FIGURE}\b"
    r"|\b[a-z_.]*[a-z](?:error|exception|warning)\b(?!\s*=)"
    r"|\btraceback \(most recent call last\)|\bout of memory\b|\bsegmentation fault\b|\bcore dumped\b|\bxid\b",
    re.IGNORECASE,
)
# Every alternative above has one of these: most text is let go by them alone, at a tenth of the time.
_HINTS = (
    "warn",
    "error",
    "critical",
    "fatal",
    "exception",
    "fail",
    "killed",
    "panic",
    "abort",
    "traceback",
    "out of memory",
    "segmentation",
    "core dumped",
    "xid",
)
# glog and Kubernetes: a letter and a date.
_LETTER = re.compile(r"^[WEF]\d{4} \d\d:\d\d:\d\d", re.MULTILINE)


def may_warn(text: str) -> bool:
    """False: no line of it warns."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) or bool(_LETTER.search(text))


def warns(text: str) -> bool:
    begin = without_escapes(text[:LOOKS_AT])
    return may_warn(begin) and bool(_WORDS.search(begin) or _LETTER.match(begin))
