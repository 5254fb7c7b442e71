"""The words of findings, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from jobs.findings.words.reasons import REASONS
from jobs.findings.words.remedies import REMEDIES, WITH_SETTINGS
from jobs.findings.words.titles import TITLES
from planner.reasons import Reason
from planner.web.words import sentence

BYTES = frozenset({"bytes", "free", "total", "bytes_per_hour"})
SHARES = frozenset({"share", "waiting"})
# A number of requests, where others of this name are shares.
COUNTED = frozenset({"one_at_a_time"})


def title_of(code: str) -> str:
    """A finding of another release is called by its code."""
    return str(TITLES.get(code, code.replace("_", " ")))


def reason_text(code: str, values: Mapping[str, Any]) -> str:
    """Nothing where a value is missing: half a reason says nothing."""
    if code == "symptom":
        return _symptom(values, "cause")
    try:
        return str(REASONS[code]) % shown(code, values)
    except KeyError:
        return ""


def remedy_text(code: str, values: Mapping[str, Any], saves_bytes: float | None = None) -> str:
    if code == "symptom":
        text = _symptom(values, "fix")
    elif code in WITH_SETTINGS and {"from", "to"} <= set(values):
        text = str(WITH_SETTINGS[code]) % shown(code, values)
    else:
        text = str(REMEDIES.get(code, ""))
    if text and saves_bytes:
        return _("%(remedy)s Saves about %(bytes)s of each GPU.") % {
            "remedy": text,
            "bytes": filesizeformat(saves_bytes),
        }
    return text


def shown(code: str, values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _shown(name, value, counted=code in COUNTED) for name, value in values.items()}


def _shown(name: str, value: object, *, counted: bool) -> str:
    if isinstance(value, int | float):
        if name in BYTES:
            return str(filesizeformat(value))
        if name in SHARES and not counted:
            return f"{round(100 * value)} %"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _symptom(values: Mapping[str, Any], part: str) -> str:
    """The planner has the sentences of its table of messages."""
    try:
        return sentence(Reason(f"symptom.{values['id']}.{part}", dict(values)))
    except KeyError:
        return ""
