"""What an XID means and what to do about it, in the reader's language. The sentences are ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise


@dataclass(frozen=True, slots=True)
class XidWords:
    meaning: Text
    remedy: Text


_LOOK_AT_PROGRAM = _("Look into the program's log at that time, and run it with compute-sanitizer if it happens again.")
_RESTART = _("Restart the machine. If it happens again, ask the provider for another one.")
_MOVE_AWAY = _("Move the work to another machine and report this one to the provider.")
_RESET_SOON = _("Reset the GPU or restart the machine at the next pause; until then watch for more of them.")

XID_WORDS: Mapping[int, XidWords] = {
    8: XidWords(_("the GPU stopped processing: a kernel ran for too long or hung"), _LOOK_AT_PROGRAM),
    13: XidWords(_("a kernel reached outside its memory or used an illegal instruction"), _LOOK_AT_PROGRAM),
    31: XidWords(_("a kernel touched an address that is not mapped"), _LOOK_AT_PROGRAM),
    32: XidWords(_("the GPU was handed a damaged stream of commands"), _RESTART),
    38: XidWords(_("the driver's firmware met an error"), _RESTART),
    43: XidWords(_("the driver ended the work of a program after an error of that program"), _LOOK_AT_PROGRAM),
    45: XidWords(
        _("a program's work was cleared away, because it was killed or after an earlier error"),
        _("Look for the error just before this one; by itself it needs nothing."),
    ),
    48: XidWords(_("a memory error that could not be corrected"), _MOVE_AWAY),
    61: XidWords(_("a controller inside the GPU warned of its own state"), _RESTART),
    62: XidWords(_("a controller inside the GPU halted"), _RESTART),
    63: XidWords(_("a failing memory row was noted, to be replaced by a spare one"), _RESET_SOON),
    64: XidWords(_("a failing memory row could not be replaced"), _MOVE_AWAY),
    68: XidWords(_("the video decoder met an error"), _LOOK_AT_PROGRAM),
    69: XidWords(_("a program used the graphics engine in a way that it does not allow"), _LOOK_AT_PROGRAM),
    74: XidWords(
        _("an error on a link between GPUs"),
        _("Collectives may hang or slow down: restart the machine, and report it if it happens again."),
    ),
    79: XidWords(_("the GPU fell off the bus: the host no longer reaches it"), _RESTART),
    92: XidWords(_("many memory errors, all of them corrected"), _RESET_SOON),
    94: XidWords(
        _("a memory error that hit one program only"),
        _("Start that program again, and reset the GPU at the next pause."),
    ),
    95: XidWords(_("a memory error that may have hit every program on the GPU"), _MOVE_AWAY),
    109: XidWords(_("the GPU took too long to switch between programs"), _RESTART),
    119: XidWords(_("the GPU's own system processor does not answer"), _RESTART),
    120: XidWords(_("the GPU's own system processor met an error"), _RESTART),
    121: XidWords(_("a corrected error on the link between GPU and CPU"), _RESET_SOON),
    140: XidWords(_("a memory error from which the GPU did not recover"), _MOVE_AWAY),
    143: XidWords(_("the GPU could not be initialised"), _RESTART),
    154: XidWords(_("the driver asks for a reset or a restart before the GPU is used again"), _RESTART),
}
UNKNOWN = XidWords(
    _("an error that this table does not know"),
    _("Look it up in NVIDIA's catalogue of XID errors, and watch whether it comes again."),
)


def xid_words(code: int | None) -> XidWords:
    return XID_WORDS.get(code, UNKNOWN) if code is not None else UNKNOWN
