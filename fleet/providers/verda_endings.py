"""What shutting down, hibernating and deleting mean at Verda: https://docs.verda.com/, read November 2026.

That an offline machine costs its full price is the general word, not yet seen on a bill of ours.
"""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop

KEPT, LOST = gettext_noop("kept"), gettext_noop("lost")
NOT_BILLED, STILL_BILLED = gettext_noop("not billed"), gettext_noop("still billed")
VOLUMES_BILLED = gettext_noop("volumes are billed until deleted")
NEW_MACHINE = gettext_noop("new machine")

ENDINGS = (
    Ending(
        event=gettext_noop("Shut down"),
        note=gettext_noop("costs as much as running: there is no stop here that saves money"),
        gpus=Fate(Sign.PAID, STILL_BILLED, gettext_noop("until deleted, as far as Verda tells")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=Fate(Sign.KEPT, KEPT),
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("same machine")),
    ),
    Ending(
        event=gettext_noop("Hibernate"),
        note=gettext_noop(
            "being withdrawn by Verda: it gives the machine up and keeps its volumes, so nothing here uses it"
        ),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, VOLUMES_BILLED),
        volumes=Fate(Sign.KEPT, KEPT),
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("memory and running programs too")),
        return_=Fate(Sign.RISK, gettext_noop("not promised"), gettext_noop("needs free capacity")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("the system volume goes to Verda's trash, others are detached"),
        gpus=Fate(Sign.OFF, NOT_BILLED),
        disks_billing=Fate(Sign.RISK, gettext_noop("look at volumes"), VOLUMES_BILLED),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        local_disk=Fate(Sign.RISK, gettext_noop("in the trash"), gettext_noop("Verda keeps it there for some days")),
        return_=Fate(Sign.NOTHING, NEW_MACHINE),
    ),
    Ending(
        event=gettext_noop("Spot is reclaimed"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by Verda")),
        disks_billing=Fate(Sign.PAID, STILL_BILLED, VOLUMES_BILLED),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        local_disk=Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted")),
        return_=Fate(Sign.NOTHING, NEW_MACHINE),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=False,
    billed_when_stopped=frozenset({Part.COMPUTE, Part.BOOT_DISK, Part.DATA_DISK}),
    billed_after_terminate=frozenset({Part.DATA_DISK, Part.NETWORK_VOLUME}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.PUBLIC_ADDRESS}),
    quantum_seconds=600,
    source="https://docs.verda.com/",
)
