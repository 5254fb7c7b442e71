"""What stopping and deleting mean at Crusoe, as documented; no bill of ours has shown it yet."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import (
    FREE,
    LOOK_AT_VOLUMES,
    LOST,
    NEW_MACHINE,
    NOT_PROMISED,
    STILL_BILLED,
    VOLUMES_DETACHED,
    VOLUMES_KEPT,
)

EPHEMERAL = gettext_noop("the ephemeral NVMe disks")

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("what is reserved is paid whether it runs or not"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("persistent disks and static addresses")),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.LOST, LOST, EPHEMERAL),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity; the public address changes")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine and its system disk"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, gettext_noop("data disks are billed until deleted")),
        volumes=VOLUMES_DETACHED,
        local_disk=Fate(Sign.LOST, LOST, EPHEMERAL),
        return_=NEW_MACHINE,
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
