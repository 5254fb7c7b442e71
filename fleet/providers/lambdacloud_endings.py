"""What ending means at Lambda: docs.lambda.ai, On-demand cloud, read November 2026; no bill has confirmed it."""

from __future__ import annotations

from fleet.providers.base import Ending, Fate, Part, Sign, StopSemantics, gettext_noop
from fleet.providers.fates import (
    FREE,
    KEPT,
    LOST,
    STILL_BILLED,
)

ENDINGS = (
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("the only way to end the charge: machines cannot be stopped"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("file systems, until deleted")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("file systems stay in their region")),
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("everything outside file systems")),
        return_=Fate(Sign.NOTHING, gettext_noop("new machine"), gettext_noop("types are often sold out")),
    ),
)

SEMANTICS = StopSemantics(
    can_stop=False,
    billed_after_terminate=frozenset({Part.NETWORK_VOLUME}),
    lost_on_terminate=frozenset({Part.BOOT_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    quantum_seconds=60,
    source="https://docs.lambda.ai/public-cloud/billing/",
)
