"""What the check of a machine says, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.formats import bytes_text
from planner.reasons import Reason
from planner.web.words import sentence

REMARKS: Mapping[str, str | Promise] = {
    "no_gpu": _("No NVIDIA driver answers on it; the plan is for %(gpu)s."),
    "fewer_gpus": _("Too few GPUs: %(found)s; the plan takes %(wanted)s."),
    "other_gpu": _("It has %(found)s; the plan was made for %(gpu)s, and its figures are of that."),
    "gpu_memory": _("GPU %(index)s has %(bytes)s; the plan needs %(needed)s."),
    "gpu_in_use": _("%(bytes)s of GPU %(index)s are in use already; %(free)s are free."),
    "shared_memory": _(
        "Shared memory (/dev/shm) has %(bytes)s, too little for processes of several GPUs: start the container with --shm-size=16g or --ipc=host."
    ),
    "memory": _("It has %(bytes)s of memory; the plan asks for %(needed)s at least."),
    "cpus": _("It has %(found)s CPU cores; the plan asks for %(wanted)s."),
    "disk": _("%(bytes)s of its disk are free; model, data and checkpoints take %(needed)s."),
    "disk_full": _("Only %(bytes)s of its disk are free."),
    "missing_packages": _(
        "It lacks %(names)s: let the install script run first, or start from an image that has them."
    ),
}
# Values that are sizes.
_BYTES = frozenset({"bytes", "needed", "free"})


def remark_text(code: str, values: Mapping[str, Any]) -> str:
    """Empty for a code of another version."""
    if code == "stack":
        return " ".join(filter(None, (_planners(values.get("reason")), _planners(values.get("fix")))))
    if code not in REMARKS:
        return ""
    shown = {name: bytes_text(value) if name in _BYTES else value for name, value in values.items()}
    return str(REMARKS[code]) % shown


def _planners(said: Any) -> str:
    if not said:
        return ""
    key, values = said
    try:
        return sentence(Reason(key, values))
    except KeyError:
        return ""
