"""What halting and destroying mean at Vultr: https://docs.vultr.com/support/platform/billing, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop

KEPT, LOST = gettext_noop("kept"), gettext_noop("lost")
STILL_BILLED = gettext_noop("still billed")

ENDINGS = (
    Ending(
        event=gettext_noop("Halt"),
        note=gettext_noop("costs as much as running: there is no stop here that saves money"),
        gpus=Fate(Sign.PAID, STILL_BILLED, gettext_noop("the GPU stays reserved")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=Fate(Sign.KEPT, KEPT),
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("same machine"), gettext_noop("with its address")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("destroys the machine; save an image first to come back, which bare metal cannot"),
        gpus=Fate(Sign.OFF, gettext_noop("not billed")),
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at volumes"), gettext_noop("block storage and snapshots are billed on")
        ),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        local_disk=Fate(Sign.LOST, LOST),
        return_=Fate(Sign.NOTHING, gettext_noop("new machine")),
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
