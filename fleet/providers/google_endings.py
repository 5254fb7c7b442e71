"""What stopping means at Google: https://cloud.google.com/compute/docs/instances/instance-lifecycle, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NEW_MACHINE, NOT_BILLED, NOT_PROMISED, STILL_BILLED

LOCAL_SSD = Fate(Sign.LOST, LOST, gettext_noop("local SSDs, as of A2 Ultra and A3"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("Google then says TERMINATED"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("disks and static addresses")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("persistent disks")),
        local_disk=LOCAL_SSD,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity; the public address changes")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine"),
        gpus=FREE,
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at disks"), gettext_noop("those set to outlive the machine are still billed")
        ),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as “auto-delete” of each says")),
        local_disk=LOCAL_SSD,
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        note=gettext_noop("with 30 seconds of notice, on the machine alone"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by Google")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("where it is set to stop")),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as its termination action says")),
        local_disk=LOCAL_SSD,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("when spot capacity is back")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=1,
    minimum_seconds=60,
    source="https://cloud.google.com/compute/docs/instances/instance-lifecycle",
)
