"""What an XID says of a card: how bad it is, and whose fault it most likely is. Words are in fleet/alerts/xid_words.py.

Meanings are those of NVIDIA's published catalogue of XID errors; the grading is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.alerts.findings import NOTE, URGENT, WARNING

LOST, FAULT, APPLICATION = "gpu.lost", "gpu.fault", "gpu.application"


@dataclass(frozen=True, slots=True)
class Xid:
    """`family`: the cause under which it is folded."""

    severity: str
    family: str


_LOST = Xid(URGENT, LOST)
_BROKEN = Xid(URGENT, FAULT)
_AILING = Xid(WARNING, FAULT)
_NOTICE = Xid(NOTE, FAULT)
_PROGRAM = Xid(NOTE, APPLICATION)

XIDS: Mapping[int, Xid] = {
    8: Xid(WARNING, APPLICATION),
    13: _PROGRAM,
    31: _PROGRAM,
    32: Xid(WARNING, APPLICATION),
    38: _AILING,
    43: _PROGRAM,
    45: _PROGRAM,
    48: _BROKEN,
    61: _AILING,
    62: _BROKEN,
    63: _NOTICE,
    64: _BROKEN,
    68: _PROGRAM,
    69: _PROGRAM,
    74: _BROKEN,
    79: _LOST,
    92: _AILING,
    94: _AILING,
    95: _BROKEN,
    109: _AILING,
    119: _LOST,
    120: _LOST,
    121: _NOTICE,
    140: _BROKEN,
    143: _BROKEN,
    154: _AILING,
}
# One that the table does not know: worth a look, and no more is known of it.
UNKNOWN = Xid(WARNING, FAULT)


def xid_of(code: int | None) -> Xid:
    return XIDS.get(code, UNKNOWN) if code is not None else UNKNOWN
