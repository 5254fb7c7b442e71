"""The families of trouble that alerts are named by. Every slice registers its own; words are made in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.states import GpuState

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Cause:
    """`title` follows the name of the subject ("train-01 went quiet"); `remedy` says what to do.

    quietable: False where a maintenance window must not keep it quiet, because money is at stake.
    state: what GPUs are in when it is open, where that is what the alert says; drawn as its mark.
    """

    name: str
    title: Text
    remedy: Text
    quietable: bool = True
    state: GpuState | None = None


_causes: dict[str, Cause] = {}


def register_cause(cause: Cause) -> Cause:
    if cause.name in _causes:
        raise ValueError(f"The cause {cause.name!r} is registered already")
    _causes[cause.name] = cause
    return cause


def cause_of(name: str) -> Cause:
    """A cause of its own name where an earlier release raised it and nobody knows it now."""
    return _causes.get(name) or Cause(name, name.replace(".", " ").replace("_", " "), "")


def all_causes() -> list[Cause]:
    return list(_causes.values())


for _cause in (
    Cause(
        "machine.unreachable",
        _("went quiet"),
        _(
            "Look at the machine in the provider's console. If it runs, reach it by SSH and look at "
            "“systemctl status rackrent-agent” and at its way out to this dashboard; if it does not answer, restart it."
        ),
        state=GpuState.UNKNOWN,
    ),
    Cause(
        "provider.outage",
        _("is out of reach"),
        _(
            "Look at the provider's status page before you touch machines. They stay listed here and are billed as before."
        ),
        state=GpuState.UNKNOWN,
    ),
    Cause(
        "network.outage",
        _("is not heard from anywhere"),
        _(
            "Machines of several providers went quiet together: look at this dashboard's own network, its web process and "
            "its certificate before the machines."
        ),
        state=GpuState.UNKNOWN,
    ),
    Cause(
        "gpu.driver",
        _("has a driver that does not answer"),
        _(
            "Save what can be saved, stop the processes on the GPUs, and restart the machine; a hung driver seldom comes back by itself."
        ),
    ),
    Cause(
        "gpu.lost",
        _("lost a GPU"),
        _(
            "Restart the machine. If the GPU does not come back, ask the provider for another machine: you pay for a card that you do not have."
        ),
    ),
    Cause(
        "gpu.not_as_rented",
        _("is not what was rented"),
        _(
            "Compare the order with the evidence below, and ask the provider for what is paid for. If the listing is right, look whether "
            "the agent runs on the machine that it is shown on."
        ),
        quietable=False,
    ),
    Cause(
        "gpu.fault",
        _("has a faulty GPU"),
        _(
            "Write a checkpoint, move the work to another machine, and hand this one to the provider with the evidence below."
        ),
    ),
    Cause(
        "gpu.application",
        _("has a program that fails on a GPU"),
        _("Look into the log of the program at that time; the GPU itself is most likely sound."),
    ),
    Cause(
        "gpu.throttled",
        _("runs its GPUs slower than it could"),
        _(
            "Report it to the provider: cooling and power are theirs. Until then a lower power limit keeps clocks steady."
        ),
    ),
    Cause(
        "memory.full",
        _("is almost out of memory"),
        _("A smaller batch, a shorter context or activation checkpointing frees memory; the Planner says how much."),
    ),
    Cause(
        "disk.full",
        _("is almost out of disk"),
        _("Delete old checkpoints and caches, or enlarge the disk before the next checkpoint is written."),
    ),
    Cause(
        "work.stalled",
        _("makes no progress"),
        _(
            "Look at the log of every rank: most often one waits in a collective for another that is gone. Restart the job from its last checkpoint."
        ),
        state=GpuState.STALLED,
    ),
    Cause(
        "work.starved",
        _("waits for data"),
        _("Copy the data to the local disk, use more loader workers, or larger files; the GPUs could do more."),
        state=GpuState.STARVED,
    ),
    Cause(
        "agent.trouble",
        _("has an agent that needs attention"),
        _("Run the install line of Settings, Agents again on the machine: it updates the agent and keeps its history."),
    ),
    Cause(
        "account.poll",
        _("cannot be read"),
        _(
            "Verify the account under Settings, Providers. Until it is read again, its machines and prices here grow old."
        ),
    ),
    Cause(
        "account.list_lost",
        _("has a list that is suddenly empty, or nearly"),
        _(
            "Look at the permissions of its key, at its project and its regions: a key that lost a right sees an empty list. "
            "Its machines count as there, and may be billed, until they are listed again or somebody says on Cleanup that they are gone."
        ),
        quietable=False,
    ),
    Cause(
        "machine.price",
        _("costs something else now"),
        _("Compare the price at the provider, and whether the machine is still worth it."),
        quietable=False,
    ),
    Cause(
        "machine.unmanaged",
        _("runs machines that nobody registered"),
        _("Register them, or stop them at the provider if nobody needs them: they are billed either way."),
        quietable=False,
    ),
    Cause(
        "machine.lease",
        _("comes to the end of its lease"),
        _("Extend the lease, or copy what you need off the machine before it ends."),
        quietable=False,
    ),
    Cause(
        "machine.notice",
        _("has a notice from its provider"),
        _(
            "Save what you need off the machine before the time that is named, and look at the notice in the provider's console: "
            "some can be put off, and a debt can be paid."
        ),
        quietable=False,
    ),
    Cause(
        "operation.stop",
        _("is not shown to have stopped"),
        _(
            "It is billed until the provider shows it stopped. Rackrent goes on asking; stop it in the provider's console as well, "
            "and look there at what it is charged for."
        ),
        quietable=False,
    ),
    Cause(
        "operation.unconfirmed",
        _("was asked for something that does not show"),
        _(
            "Look at the machine in the provider's console. Rackrent goes on asking; a person may give up what cannot be proved."
        ),
        quietable=False,
    ),
    Cause(
        "operation.failed",
        _("was refused by its provider"),
        _(
            "Put right what the provider names below, then ask again. Until then the machine is as it was, and is billed so."
        ),
        quietable=False,
    ),
    Cause(
        "channel.broken",
        _("takes no more messages"),
        _(
            "Look at the channel under Settings, Channels: it says what is wrong there. What could not be told is told once it works again."
        ),
        quietable=False,
    ),
    Cause(
        "rackrent.trouble",
        _("Rackrent itself has trouble"),
        _("Look at /healthz and at the log of the process that is named below; while it lasts, alerts may come late."),
        quietable=False,
    ),
):
    register_cause(_cause)
