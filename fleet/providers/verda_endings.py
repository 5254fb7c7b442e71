"""What shutting down, hibernating and deleting mean at Verda, as its own package (1.25) has it.

That an offline machine costs its full price is the general word, not yet seen on a bill of ours.
"""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import (
    FREE,
    LOOK_AT_VOLUMES,
    LOST,
    NEW_MACHINE,
    NOT_BILLED,
    NOT_PROMISED,
    STILL_BILLED,
    VOLUMES_DETACHED,
    VOLUMES_KEPT,
    off_at_full_price,
)

VOLUMES_BILLED = gettext_noop("volumes are billed until deleted")

ENDINGS = (
    off_at_full_price(gettext_noop("Shut down"), gettext_noop("until deleted, as far as Verda tells")),
    Ending(
        event=gettext_noop("Hibernate"),
        note=gettext_noop(
            "being withdrawn by Verda: it gives the machine up and keeps its volumes, so nothing here uses it"
        ),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, VOLUMES_BILLED),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("memory and running programs too")),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("needs free capacity")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("the system volume goes to Verda's trash, others are detached"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, VOLUMES_BILLED),
        volumes=VOLUMES_DETACHED,
        local_disk=Fate(Sign.RISK, gettext_noop("in the trash"), gettext_noop("Verda keeps it there for some days")),
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by Verda")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, VOLUMES_BILLED),
        volumes=VOLUMES_DETACHED,
        local_disk=VOLUMES_DETACHED,
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=False,
    billed_when_stopped=frozenset({Part.COMPUTE, Part.BOOT_DISK, Part.DATA_DISK}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.NETWORK_VOLUME}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=600,
    source="https://github.com/verda-cloud/sdk-python",
)
