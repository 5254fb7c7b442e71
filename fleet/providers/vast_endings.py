"""What stopping means at Vast.ai: docs.vast.ai, Billing and Rental types, read November 2026; no bill has confirmed it."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import (
    FREE,
    KEPT,
    LOOK_AT_VOLUMES,
    LOST,
    NEW_MACHINE,
    NOT_BILLED,
    NOT_PROMISED,
    STILL_BILLED,
    VOLUMES_KEPT,
)

DISK = gettext_noop("the machine's disk, at the host's price")
VOLUMES = gettext_noop("volumes are billed until they are deleted themselves")
GPUS_TAKEN = Fate(Sign.RISK, NOT_PROMISED, gettext_noop("others may rent the GPUs meanwhile"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("the disk stays on the host"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, DISK),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT, gettext_noop("until the host's offer ends")),
        return_=GPUS_TAKEN,
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine and its disk"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, VOLUMES),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Outbid"),
        note=gettext_noop("of interruptible machines: somebody pays more"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("stopped without notice")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, DISK),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT, gettext_noop("until the host's offer ends")),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("when the bid is the highest again")),
    ),
    Ending(
        event=gettext_noop("Credit runs out"),
        note=gettext_noop("the account's balance reaches zero"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("the balance goes below zero")),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("deleted after a while")),
        local_disk=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("deleted after a while")),
        return_=GPUS_TAKEN,
    ),
    Ending(
        event=gettext_noop("The host's offer ends"),
        note=gettext_noop("at the end date that each machine has"),
        gpus=FREE,
        disks_billing=FREE,
        volumes=Fate(Sign.LOST, LOST),
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.CONTAINER_DISK}),
    lost_on_stop=frozenset({Part.GPU_SLOT}),
    billed_after_terminate=frozenset({Part.DATA_DISK}),
    lost_on_terminate=frozenset({Part.CONTAINER_DISK, Part.PUBLIC_ADDRESS}),
    zero_balance=gettext_noop("machines are stopped, their disks are still billed and later deleted"),
    source="https://docs.vast.ai/documentation/reference/billing",
)
