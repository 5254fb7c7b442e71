"""What stopping means at RunPod: docs.runpod.io, Billing and Storage types, read November 2026; no bill has confirmed it."""

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
)

NETWORK_BILLED = gettext_noop("a network volume is billed until it is deleted itself")

ENDINGS = (
    Ending(
        event=gettext_noop("Stop"),
        note=gettext_noop("the pod stays on its host"),
        gpus=FREE,
        disks_billing=Fate(Sign.PAID, STILL_BILLED, gettext_noop("the volume, at twice the price of a running pod")),
        volumes=Fate(Sign.KEPT, KEPT, gettext_noop("what lies under the mount path, such as /workspace")),
        local_disk=Fate(Sign.LOST, LOST, gettext_noop("the container disk: everything outside the mount path")),
        return_=Fate(Sign.RISK, NOT_PROMISED, gettext_noop("others may have taken the host's GPUs meanwhile")),
    ),
    Ending(
        event=gettext_noop("Terminate"),
        note=gettext_noop("deletes the pod"),
        gpus=FREE,
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, NETWORK_BILLED),
        volumes=Fate(Sign.RISK, gettext_noop("lost or kept"), gettext_noop("only network volumes outlive the pod")),
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
    Ending(
        event=gettext_noop("Credit runs out"),
        note=gettext_noop("the account's balance reaches zero"),
        gpus=Fate(Sign.OFF, NOT_BILLED, gettext_noop("ended by RunPod")),
        disks_billing=Fate(Sign.RISK, LOOK_AT_VOLUMES, NETWORK_BILLED),
        volumes=Fate(Sign.LOST, LOST, gettext_noop("network volumes later too")),
        local_disk=Fate(Sign.LOST, LOST),
        return_=NEW_MACHINE,
    ),
)

SEMANTICS = StopSemantics(
    can_stop=True,
    billed_when_stopped=frozenset({Part.DATA_DISK}),
    lost_on_stop=frozenset({Part.CONTAINER_DISK, Part.GPU_SLOT, Part.PUBLIC_ADDRESS}),
    billed_after_terminate=frozenset({Part.NETWORK_VOLUME}),
    lost_on_terminate=frozenset({Part.CONTAINER_DISK, Part.DATA_DISK, Part.PUBLIC_ADDRESS}),
    zero_balance=gettext_noop("running pods are ended; those without a network volume lose their data"),
    source="https://docs.runpod.io/accounts-billing/billing",
)
