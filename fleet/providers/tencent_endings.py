"""What stopping means at Tencent Cloud: https://cloud.tencent.com/document/product/213/19918, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, KEPT, LOST, NOT_PROMISED, STILL_BILLED, VOLUMES_KEPT

LOCAL_DISK = Fate(Sign.LOST, LOST, gettext_noop("on types with local disks"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("always without charge, STOP_CHARGING"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("disks, bandwidth packages, images")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("cloud disks")),
        local_disk=LOCAL_DISK,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free stock; the public address is released")),
    ),
    Ending(
        event=gettext_noop("Stop in the console with charge"),
        note=gettext_noop("KEEP_CHARGING"),
        gpus=Fate(Sign.PAID, gettext_noop("billed in full"), gettext_noop("as if it ran")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("the same machine")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("by way of the recycle bin, about 2 hours"),
        gpus=FREE,
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at disks"), gettext_noop("elastic disks and addresses outlive the machine")
        ),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("the system disk is lost")),
        local_disk=LOCAL_DISK,
        return_=Fate(Sign.RISK, gettext_noop("for 2 hours"), gettext_noop("from the recycle bin, in the console")),
    ),
    Ending(
        event=gettext_noop("The account cannot pay"),
        note=gettext_noop("isolated: ARREAR"),
        gpus=Fate(Sign.OFF, gettext_noop("stopped by Tencent")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=Fate(Sign.RISK, gettext_noop("released later")),
        local_disk=LOCAL_DISK,
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("when the bill is paid")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.PUBLIC_ADDRESS, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK}),
    quantum_seconds=1,
    minimum_seconds=0,
    currency="CNY",
    zero_balance=gettext_noop("machines are stopped and later released"),
    source="https://cloud.tencent.com/document/product/213/19918",
)
