"""What stopping and deleting mean at Crusoe: https://docs.crusoecloud.com/compute/virtual-machines/managing-vms, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop

KEPT, LOST = gettext_noop("kept"), gettext_noop("lost")
NOT_BILLED = gettext_noop("not billed")
EPHEMERAL = gettext_noop("the ephemeral NVMe disks")

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("what is reserved is paid whether it runs or not"),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(
            Sign.PAID, gettext_noop("still billed"), gettext_noop("persistent disks and static addresses")
        ),
        volumes=Fate(Sign.KEPT, KEPT),
        local_disk=Fate(Sign.LOST, LOST, EPHEMERAL),
        return_=Fate(
            Sign.RISK, gettext_noop("not promised"), gettext_noop("needs free capacity; the public address changes")
        ),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine and its system disk"),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at volumes"), gettext_noop("data disks are billed until deleted")
        ),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        local_disk=Fate(Sign.LOST, LOST, EPHEMERAL),
        return_=Fate(Sign.NOTHING, gettext_noop("new machine")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    source="https://docs.crusoecloud.com/compute/virtual-machines/managing-vms",
)
