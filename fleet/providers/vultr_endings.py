"""What halting and destroying mean at Vultr, as documented; no bill of ours has shown it yet."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, LOOK_AT_VOLUMES, LOST, NEW_MACHINE, VOLUMES_DETACHED, off_at_full_price

ENDINGS = (
    off_at_full_price(gettext_noop("Halt")),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("destroys the machine; save an image first to come back, which bare metal cannot"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, gettext_noop("block storage and snapshots are billed on")),
        volumes=VOLUMES_DETACHED,
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=False,
    billed_when_stopped=frozenset({Part.COMPUTE, Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=3600,
    minimum_seconds=3600,
    source="https://docs.vultr.com/support/platform/billing",
)
