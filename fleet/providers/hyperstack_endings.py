"""What shutting off, hibernating and deleting mean at Hyperstack: https://docs.hyperstack.cloud/docs/billing/states-and-billing.

Hibernating gives the host back: what lay on its own (ephemeral) disk is taken to be lost.
"""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import (
    FREE,
    KEPT,
    LOOK_AT_VOLUMES,
    LOST,
    NEW_MACHINE,
    NOT_PROMISED,
    STILL_BILLED,
    VOLUMES_DETACHED,
    VOLUMES_KEPT,
)

EPHEMERAL = gettext_noop("the ephemeral disk")

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("hibernates: the only way here that ends the charge for the GPUs; not every flavor can"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("root disk, volumes and the public address")),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.LOST, LOST, EPHEMERAL),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity; the address is kept")),
    ),
    Ending(
        event=gettext_noop("Shut off"),
        note=gettext_noop("from inside the machine or in the console: costs as much as running"),
        gpus=Fate(Sign.PAID, STILL_BILLED, gettext_noop("the GPU stays reserved")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("same machine"), gettext_noop("with its address")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, gettext_noop("volumes and snapshots are billed on")),
        volumes=VOLUMES_DETACHED,
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("root and ephemeral disk")),
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=60,
    minimum_seconds=60,
    source="https://docs.hyperstack.cloud/docs/billing/states-and-billing",
)
