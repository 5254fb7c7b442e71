"""What a reading of the provider proves of an operation. Pure: no Django, no clock.

    stop        STOPPED and not billed in full, or gone            terminate   TERMINATED, or gone
    start       RUNNING                                            launch      RUNNING; ERROR ends it as failed
    reboot      a newer start, or seen to leave RUNNING and come back; where a provider shows neither, that is said

"Gone" takes several complete readings in a row over some time: a list that is late, or wrong once, ends no machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.providers.base import Billing, ImageState, InstanceState, ProviderImage, ProviderInstance

CLOCKS_DIFFER = timedelta(minutes=2)
GONE_READS = 3
GONE_AFTER = timedelta(seconds=30)
# A machine that no list has shown yet may only be late.
UNSEEN_GONE_AFTER = timedelta(minutes=15)
# After which an accepted restart that nothing shows is closed as accepted and unproved.
REBOOT_SHOWS_WITHIN = timedelta(minutes=15)


class Verdict(StrEnum):
    PROVED = "proved"
    FAILED = "failed"
    MOVING = "moving"  # something came of it, the end did not
    UNMOVED = "unmoved"  # as if nobody had asked


@dataclass(frozen=True, slots=True)
class Judgement:
    """`word`: what proved it (words.PROOFS), or how it failed (words.FAILURES)."""

    verdict: Verdict
    word: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is known of an operation when a reading comes in. `moved`: an earlier reading showed that something came of it."""

    kind: str
    sent_at: datetime
    read_at: datetime
    accepted: bool = True
    started_before: datetime | None = None
    moved: bool = False
    ever_seen: bool = True
    absent_reads: int = 0
    absent_since: datetime | None = None
    stop_bills_compute: bool = False


MOVING, UNMOVED = Judgement(Verdict.MOVING), Judgement(Verdict.UNMOVED)
GONE = Judgement(Verdict.FAILED, "gone")


def judge(case: Case, seen: ProviderInstance | None) -> Judgement:
    """`seen` None: a complete reading did not name the machine; `case` counts it already."""
    return _absent(case) if seen is None else _JUDGES[case.kind](case, seen)


def _absent(case: Case) -> Judgement:
    """A machine that was never seen may still come: providers list new ones late."""
    if not is_gone(case) or (case.kind == "launch" and not case.ever_seen):
        return MOVING
    return Judgement(Verdict.PROVED, "gone") if case.kind in {"stop", "terminate"} else GONE


def is_gone(case: Case) -> bool:
    since, after = case.absent_since, GONE_AFTER if case.ever_seen else UNSEEN_GONE_AFTER
    return case.absent_reads >= GONE_READS and since is not None and case.read_at - since >= after


def _stop(case: Case, seen: ProviderInstance) -> Judgement:
    if seen.state is InstanceState.TERMINATED:
        return _terminate(case, seen)
    if seen.state is InstanceState.STOPPED:
        return _stopped(case, seen)
    return MOVING if seen.state in {InstanceState.STOPPING, InstanceState.TERMINATING} else UNMOVED


def _stopped(case: Case, seen: ProviderInstance) -> Judgement:
    """Where nobody says what it costs now, that is part of the proof: unknown is not nothing."""
    if seen.billing is Billing.FULL and not case.stop_bills_compute:
        return MOVING
    return Judgement(Verdict.PROVED, "stopped" if seen.billing is Billing.UNKNOWN else "state")


def _terminate(_case: Case, seen: ProviderInstance) -> Judgement:
    if seen.state is InstanceState.TERMINATED and seen.billing is not Billing.FULL:
        return Judgement(Verdict.PROVED, "terminated")
    return MOVING if seen.state in {InstanceState.TERMINATING, InstanceState.TERMINATED} else UNMOVED


def _start(_case: Case, seen: ProviderInstance) -> Judgement:
    if seen.state is InstanceState.RUNNING:
        return Judgement(Verdict.PROVED, "state")
    if seen.state is InstanceState.TERMINATED:
        return GONE
    coming = {InstanceState.STARTING, InstanceState.PROVISIONING, InstanceState.TERMINATING}
    return MOVING if seen.state in coming else UNMOVED


def _launch(_case: Case, seen: ProviderInstance) -> Judgement:
    if seen.state is InstanceState.RUNNING:
        return Judgement(Verdict.PROVED, "state")
    if seen.state is InstanceState.ERROR:
        return Judgement(Verdict.FAILED, "launch_error")
    return GONE if seen.state is InstanceState.TERMINATED else MOVING


def _reboot(case: Case, seen: ProviderInstance) -> Judgement:
    if seen.state is InstanceState.TERMINATED:
        return GONE
    if seen.state is not InstanceState.RUNNING:
        return MOVING
    if _started_anew(case, seen):
        return Judgement(Verdict.PROVED, "restarted")
    if case.moved:
        return Judgement(Verdict.PROVED, "returned")
    if case.accepted and case.read_at - case.sent_at >= REBOOT_SHOWS_WITHIN:
        return Judgement(Verdict.PROVED, "unproved")
    return MOVING


def _started_anew(case: Case, seen: ProviderInstance) -> bool:
    """Newer than before, and not from before the call: somebody else may have restarted it since it was last listed."""
    if seen.started_at is None or seen.started_at < case.sent_at - CLOCKS_DIFFER:
        return False
    return seen.started_at > (case.started_before or case.sent_at)


_JUDGES: Mapping[str, Callable[[Case, ProviderInstance], Judgement]] = {
    "stop": _stop,
    "terminate": _terminate,
    "start": _start,
    "launch": _launch,
    "reboot": _reboot,
    # While its image is made the machine itself proves nothing.
    "save_image": lambda _case, _seen: MOVING,
}


def judge_image(image: ProviderImage | None, *, machine_gone: bool = False) -> Judgement:
    """None: a complete list of images does not name it (yet); of a machine that is gone none comes any more."""
    if image is None and machine_gone:
        return GONE
    if image is None or image.state not in {ImageState.READY, ImageState.FAILED}:
        return MOVING
    ready = image.state is ImageState.READY
    return Judgement(Verdict.PROVED, "image") if ready else Judgement(Verdict.FAILED, "image_failed")
