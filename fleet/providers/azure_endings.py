"""What stopping means at Azure: https://learn.microsoft.com/azure/virtual-machines/states-billing, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NEW_MACHINE, NOT_BILLED, NOT_PROMISED, STILL_BILLED, VOLUMES_KEPT

TEMPORARY = Fate(Sign.LOST, LOST, gettext_noop("the temporary disk"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("always deallocated"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("disks and static addresses")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("managed disks")),
        local_disk=TEMPORARY,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity; a dynamic address changes")),
    ),
    Ending(
        event=gettext_noop("Shut down in the machine itself, or “power off”"),
        note=gettext_noop("Azure then says stopped"),
        gpus=Fate(Sign.PAID, gettext_noop("billed in full"), gettext_noop("as if it ran")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("the same machine")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine"),
        gpus=FREE,
        disks_billing=Fate(
            Sign.RISK,
            gettext_noop("look at disks"),
            gettext_noop("unless set to be deleted with the machine, as those of machines rented here"),
        ),
        volumes=Fate(
            Sign.RISK, gettext_noop("lost or kept"), gettext_noop("the boot disk of machines rented here is lost")
        ),
        local_disk=TEMPORARY,
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        note=gettext_noop("with 30 seconds of notice, on the machine alone"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by Azure")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("where it is set to deallocate")),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as its eviction policy says")),
        local_disk=TEMPORARY,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("when spot capacity is back")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT}),
    billed_after_terminate=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS, Part.SAVED_IMAGES}),
    # Each disk and address says whether it goes with the machine, and those of machines that are ordered here do: both may be.
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=1,
    minimum_seconds=0,
    zero_balance=gettext_noop("the subscription is disabled, its machines are deallocated"),
    source="https://learn.microsoft.com/azure/virtual-machines/states-billing",
)
