"""What agents say, in the reader's language. Words that no table knows are shown as they came: cleaned, and escaped by the page."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.telemetry.matching import ADDRESS, REVOKED, SAME_ID, SEVERAL, SHARED, TAKEN
from fleet.telemetry.models import MachineEvent

Words = Mapping[str, str | Promise]

NVML_WORDS: Words = {
    "": _("not said yet"),
    "ok": _("reads the GPUs"),
    "absent": _("no NVIDIA driver"),
    "hung": _("the driver hangs"),
    "mismatch": _("driver and library do not match"),
    "error": _("the driver answers with errors"),
    "paused": _("paused"),
}
# What a chart or a band is made of.
RESOLUTION_WORDS: Words = {
    "raw": _("binned raw samples"),
    "5min": _("rollups of 5 minutes"),
    "1h": _("rollups of 1 hour"),
}
CONFLICT_WORDS: Words = {
    SEVERAL: _("The ids it found name several listed machines."),
    TAKEN: _("The machine that its ids name has another agent already."),
    REVOKED: _("The agent of the machine that its ids name was revoked after the install line was made."),
    SHARED: _(
        "Two machines report with its token: one is a copy of the other. Revoke the agent and enrol each machine."
    ),
    ADDRESS: _(
        "A listed machine without an agent has the address that it reports from; nothing else says that it is that one."
    ),
    SAME_ID: _(
        "Another machine that reports has the same machine id: a copy of one image, or one that claims to be the other."
    ),
}
EVENT_WORDS: Words = {
    "xid": _("XID %(code)s"),
    "gpu_lost": _("GPU lost"),
    "gpu_back": _("GPU is back"),
    "reset_required": _("GPU must be reset"),
    "driver_mismatch": _("Driver and library do not match"),
    "driver_hung": _("Driver hangs"),
    "driver_back": _("Driver answers again"),
    "gpu_count_changed": _("Number of GPUs changed"),
    "ecc_uncorrected": _("Uncorrected memory error"),
    "row_remap_failure": _("A memory row could not be remapped"),
    "process_list_unreliable": _("Process list is not reliable"),
    "agent_started": _("Agent started"),
}
ENVIRONMENT_LABELS: Words = {
    "os": _("System"),
    "kernel": _("Kernel"),
    "container": _("Container"),
    "cpu_model": _("CPU"),
    "driver": _("Driver"),
    "cuda_driver": _("CUDA of the driver"),
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "python": "Python",
}

# XIDs of an application's own fault; the others say something of the card (NVIDIA's catalogue of XID errors).
APPLICATION_XIDS = frozenset({13, 31, 43, 45, 63, 92})
# How loud an event is on a timeline; what is not named here is a plain note.
URGENT_KINDS = frozenset({"gpu_lost", "reset_required", "ecc_uncorrected", "row_remap_failure"})
WARNING_KINDS = frozenset({"driver_mismatch", "driver_hung", "gpu_count_changed"})


def nvml_word(state: str) -> str:
    return str(NVML_WORDS.get(state, state))


def conflict_word(code: str) -> str:
    return str(CONFLICT_WORDS.get(code, code))


def event_word(event: MachineEvent) -> str:
    known = EVENT_WORDS.get(event.kind)
    if known is None:
        return event.kind.replace("_", " ")
    return str(known) % {"code": "?" if event.code is None else event.code}


def event_place(event: MachineEvent) -> str:
    return gettext("GPU %(index)d") % {"index": event.gpu.index} if event.gpu else ""


def event_severity(event: MachineEvent) -> str:
    """urgent, warning, or "" for what only needs to be known."""
    if event.kind == "xid":
        return "warning" if event.code in APPLICATION_XIDS else "urgent"
    if event.kind in URGENT_KINDS:
        return "urgent"
    return "warning" if event.kind in WARNING_KINDS else ""


def resolution_words(resolution: str) -> str:
    return str(RESOLUTION_WORDS[resolution])
