"""What powering off and destroying mean at DigitalOcean, as documented; no bill of ours has shown it yet."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import FREE, LOOK_AT_VOLUMES, LOST, NEW_MACHINE, VOLUMES_DETACHED, off_at_full_price

ENDINGS = (
    off_at_full_price(gettext_noop("Power off")),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("destroys the Droplet; save an image first to come back"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, gettext_noop("volumes and snapshots are billed on")),
        volumes=VOLUMES_DETACHED,
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("boot and scratch disks")),
        return_=NEW_MACHINE,
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
