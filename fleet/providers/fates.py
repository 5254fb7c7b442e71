"""What becomes of machines at many providers, in words: for the tables of endings."""

from __future__ import annotations

from fleet.providers.endings import Ending, Fate, Sign
from fleet.providers.values import gettext_noop

KEPT, LOST = gettext_noop("kept"), gettext_noop("lost")
NOT_BILLED, STILL_BILLED = gettext_noop("not billed"), gettext_noop("still billed")
LOOK_AT_VOLUMES, NOT_PROMISED = gettext_noop("look at volumes"), gettext_noop("not promised")

FREE = Fate(Sign.OFF, NOT_BILLED)
VOLUMES_KEPT = Fate(Sign.KEPT, KEPT)
VOLUMES_DETACHED = Fate(Sign.KEPT, KEPT, gettext_noop("detached, billed until deleted"))
NEW_MACHINE = Fate(Sign.NOTHING, gettext_noop("new machine"))


def off_at_full_price(event: str, note: str = gettext_noop("the GPU stays reserved")) -> Ending:
    """The end that is none: switched off, and charged as if it ran. `event` and `note` are English message ids."""
    return Ending(
        event=event,
        note=gettext_noop("costs as much as running: there is no stop here that saves money"),
        gpus=Fate(Sign.PAID, STILL_BILLED, note),
        disks_billing=Fate(Sign.PAID, STILL_BILLED),
        volumes=VOLUMES_KEPT,
        local_disk=Fate(Sign.KEPT, KEPT),
        return_=Fate(Sign.KEPT, gettext_noop("same machine"), gettext_noop("with its address")),
    )
