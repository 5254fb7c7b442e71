"""What powering off and releasing mean at AutoDL: https://www.autodl.com/docs/, read November 2026. The 15 days are told by users, not by a bill."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NEW_MACHINE, NOT_BILLED, NOT_PROMISED, STILL_BILLED, VOLUMES_KEPT

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("powers off; terms paid by day, week or month run on"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("paid disk space, day by day")),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT, gettext_noop("released after 15 days off, as users report")),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("the GPU may be let to somebody else")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("powers off first, then releases the machine with its disks"),
        gpus=FREE,
        disks_billing=Fate(Sign.OFF, NOT_BILLED, gettext_noop("saved images beyond the free space are billed on")),
        volumes=Fate(Sign.LOST, LOST, gettext_noop("data disk")),
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.DATA_DISK}),
    lost_on_stop=frozenset({Part.GPU_SLOT}),
    billed_after_terminate=frozenset({Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PREPAID_TERM}),
    currency="CNY",
    source="https://www.autodl.com/docs/",
)
