"""What stopping means at Alibaba Cloud: https://www.alibabacloud.com/help/en/ecs/user-guide/economical-mode, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NEW_MACHINE, NOT_PROMISED, STILL_BILLED, VOLUMES_KEPT

LOCAL_DISK = Fate(Sign.LOST, LOST, gettext_noop("on types with local disks"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("always in economical mode, StopCharging"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("disks and elastic addresses")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("cloud disks")),
        local_disk=LOCAL_DISK,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free stock; the public address changes")),
    ),
    Ending(
        event=gettext_noop("Stop in the console without economical mode"),
        note=gettext_noop("KeepCharging"),
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
            gettext_noop("those not released with the machine are still billed"),
        ),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as “release with instance” of each says")),
        local_disk=LOCAL_DISK,
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("The account cannot pay"),
        note=gettext_noop("the lock “financial”"),
        gpus=Fate(Sign.OFF, gettext_noop("stopped by Alibaba")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=Fate(Sign.RISK, gettext_noop("released later"), gettext_noop("after about 15 days")),
        local_disk=LOCAL_DISK,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("when the bill is paid")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=1,
    minimum_seconds=0,
    currency="CNY",
    zero_balance=gettext_noop("machines are stopped and later released"),
    source="https://www.alibabacloud.com/help/en/ecs/user-guide/economical-mode",
)
