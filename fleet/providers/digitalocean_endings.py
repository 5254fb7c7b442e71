"""What powering off and destroying mean at DigitalOcean: https://docs.digitalocean.com/products/droplets/details/pricing/, read November 2026."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop

KEPT, LOST = gettext_noop("kept"), gettext_noop("lost")
STILL_BILLED = gettext_noop("still billed")
NO_STOP = gettext_noop("costs as much as running: there is no stop here that saves money")

ENDINGS = (
    Ending(
        event=gettext_noop("Power off"),
        note=NO_STOP,
        gpus=Fate(Sign.PAID, STILL_BILLED, gettext_noop("the GPU stays reserved")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=Fate(Sign.KEPT, KEPT),
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("same machine"), gettext_noop("with its address")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("destroys the Droplet; save an image first to come back"),
        gpus=Fate(Sign.OFF, gettext_noop("not billed")),
        disks_billing=Fate(
            Sign.RISK, gettext_noop("look at volumes"), gettext_noop("volumes and snapshots are billed on")
        ),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("boot and scratch disks")),
        return_=Fate(Sign.NOTHING, gettext_noop("new machine")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=False,
    billed_when_stopped=frozenset({Part.COMPUTE, Part.BOOT_DISK, Part.LOCAL_DISK, Part.DATA_DISK}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.SAVED_IMAGES}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.LOCAL_DISK, Part.PUBLIC_ADDRESS}),
    minimum_seconds=60,
    source="https://docs.digitalocean.com/products/droplets/details/pricing/",
)
