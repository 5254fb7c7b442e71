"""What stopping means in the sandbox: as at a cloud that keeps the disk and promises nothing else (docs/sandbox.md)."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NEW_MACHINE, NOT_BILLED, NOT_PROMISED, STILL_BILLED

NO_VOLUMES = Fate(Sign.NOTHING, gettext_noop("none"))
DISK_BILLED = Fate(Sign.PAID, STILL_BILLED, gettext_noop("the machine's disk"))
DISK_KEPT = Fate(Sign.KEPT, KEPT)

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        gpus=FREE,
        disks_billing=DISK_BILLED,
        volumes=NO_VOLUMES,
        local_disk=DISK_KEPT,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity; the public address changes")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine"),
        gpus=FREE,
        disks_billing=Fate(Sign.OFF, NOT_BILLED),
        volumes=NO_VOLUMES,
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        note=gettext_noop("comes back after ten minutes"),
        gpus=FREE,
        disks_billing=DISK_BILLED,
        volumes=NO_VOLUMES,
        local_disk=DISK_KEPT,
        return_=Fate(Sign.KEPT, gettext_noop("same machine")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK}),
    lost_on_stop=frozenset({Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    settle_seconds=60,
    source="docs/sandbox.md",
    confirmed=True,
)
