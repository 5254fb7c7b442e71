"""What stopping means at EC2: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop

NOT_BILLED = gettext_noop("not billed")
LOST, KEPT = gettext_noop("lost"), gettext_noop("kept")
INSTANCE_STORE = Fate(Sign.LOST, LOST, gettext_noop("instance store, as of p4d"))

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("not for one-time spot requests"),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(Sign.PAID, gettext_noop("still billed"), gettext_noop("EBS and elastic addresses")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("EBS")),
        local_disk=INSTANCE_STORE,
        return_=Fate(
            Sign.RISK, gettext_noop("not promised"), gettext_noop("needs free capacity; the public address changes")
        ),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the machine"),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(
            Sign.RISK,
            gettext_noop("look at volumes"),
            gettext_noop("those set to outlive the machine are still billed"),
        ),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as DeleteOnTermination of each says")),
        local_disk=INSTANCE_STORE,
        return_=Fate(Sign.NOTHING, gettext_noop("new machine")),
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        note=gettext_noop("with 2 minutes of notice"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by EC2")),
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at volumes"), gettext_noop("stopped ones keep their EBS, billed")
        ),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("as the request says: terminate or stop")),
        local_disk=INSTANCE_STORE,
        return_=Fate(Sign.RISK, gettext_noop("not promised"), gettext_noop("when spot capacity is back")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.BOOT_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    lost_on_stop=frozenset({Part.LOCAL_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.LOCAL_DISK, Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=1,
    minimum_seconds=60,
    rate_has_disks=False,
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html",
)
