"""How an attempt goes on from what is known of its machines. Pure: facts in, the next state and what to do on each machine out.

    queued ─► preparing ─► running ─► succeeded
                  │            ├─ a node failed, was lost, was asked to stop ─► stopping ─► failed | stopped | lost
                  └────────────┴─ a machine is gone ────────────────────────────► stopping ─► lost

A machine that cannot be reached changes nothing: the command runs on without us. Only the machine itself, or its provider, says that it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class State(StrEnum):
    """jobs.book.models.JobState."""

    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


OPEN = frozenset({State.QUEUED, State.PREPARING, State.RUNNING, State.STOPPING})


class Act(StrEnum):
    """What is done on one machine. All but NOTHING look and read the log as well."""

    NOTHING = "nothing"
    # Of several: which interfaces it has; then all at once, whether they reach each other.
    ASK = "ask"
    MEET = "meet"
    PREPARE = "prepare"
    INSTALL = "install"
    LAUNCH = "launch"
    LOOK = "look"
    TERM = "term"
    KILL = "kill"


# From asking politely to ending firmly.
POLITE = timedelta(seconds=20)
PREPARED_WITHIN = timedelta(minutes=20)
# Gigabytes of wheels over a slow line, or a compiler at work.
INSTALLED_WITHIN = timedelta(hours=2)
# Of the others, when one has failed: torchrun and its like end them by themselves and say why.
ENDS_ITSELF = timedelta(seconds=30)

# What an attempt becomes when its machines have ended, by why it was stopped.
ENDS = {
    "asked": State.STOPPED,
    "deadline": State.STOPPED,
    "budget": State.STOPPED,
    "exit": State.FAILED,
    "not_prepared": State.FAILED,
    "no_way": State.FAILED,
    "environment": State.FAILED,
    "install": State.FAILED,
    "lost": State.LOST,
    "rebooted": State.LOST,
    "machine_gone": State.LOST,
    "unhealthy": State.FAILED,
    "restart": State.STOPPED,
}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """`launched`: it was, or may have been, written before it was done. `ended_at`: when it was seen to have. `lost`: "" or why nobody can say how it ended.
    `asked`, `met`: whether it said its interfaces, and whether it reached the others; true of a machine by itself. `refused`: why nothing is launched on it. `sent`: its files are there; `installing`: so may be what install.sh started.
    """

    asked: bool = True
    met: bool = True
    refused: str = ""
    sent: bool = False
    installing: bool = False
    prepared: bool = False
    launched: bool = False
    started: bool = False
    ended_at: datetime | None = None
    exit_code: int | None = None
    lost: str = ""
    machine_gone: bool = False
    term_sent_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None or bool(self.lost) or self.machine_gone


@dataclass(frozen=True, slots=True)
class Facts:
    """`asked`: why it is to be stopped: "", asked, deadline, budget, unhealthy, restart. `since`: of the present state; `why`: of stopping."""

    now: datetime
    state: State
    since: datetime
    nodes: tuple[NodeFacts, ...]
    asked: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """The state from now on with its reason, and what to do on each machine, in the order of the nodes."""

    state: State
    why: str
    acts: tuple[Act, ...]


def advance(facts: Facts) -> Step:
    """The same facts again change nothing more."""
    state, why = next_state(facts)
    return Step(state, why, tuple(act_on(node, state, facts) for node in facts.nodes))


def next_state(facts: Facts) -> tuple[State, str]:
    match facts.state:
        case State.QUEUED:
            return (State.STOPPED, facts.asked) if facts.asked else (State.PREPARING, "")
        case State.PREPARING:
            return _preparing(facts)
        case State.RUNNING:
            return _running(facts)
        case State.STOPPING:
            return _stopping(facts, facts.why)
    return facts.state, facts.why


def _preparing(facts: Facts) -> tuple[State, str]:
    nodes = facts.nodes
    if any(node.machine_gone for node in nodes):
        return _stopping(facts, "machine_gone")
    if facts.asked:
        return _stopping(facts, facts.asked)
    if refused := next((node.refused for node in nodes if node.refused), ""):
        return _stopping(facts, refused)
    if all(node.prepared for node in nodes):
        return State.RUNNING, ""
    if facts.now - facts.since >= (INSTALLED_WITHIN if any(node.installing for node in nodes) else PREPARED_WITHIN):
        return _stopping(facts, "not_prepared")
    return State.PREPARING, ""


def _running(facts: Facts) -> tuple[State, str]:
    nodes = facts.nodes
    if all(node.ended_at is not None and node.exit_code == 0 for node in nodes):
        return State.SUCCEEDED, ""
    if facts.asked:
        return _stopping(facts, facts.asked)
    if any(node.machine_gone for node in nodes):
        return _stopping(facts, "machine_gone")
    if lost := next((node.lost for node in nodes if node.lost), ""):
        return _stopping(facts, lost)
    if any(node.exit_code not in {None, 0} for node in nodes):
        return _stopping(facts, "exit")
    return State.RUNNING, ""


def _stopping(facts: Facts, why: str) -> tuple[State, str]:
    """Over when nothing of it can run any more: what was never launched does not."""
    if all(node.is_over or not (node.launched or node.installing) for node in facts.nodes):
        return ENDS[why], why
    return State.STOPPING, why


def act_on(node: NodeFacts, state: State, facts: Facts) -> Act:
    if node.is_over or state not in OPEN:
        return Act.NOTHING
    match state:
        case State.PREPARING:
            return _preparing_act(node, facts)
        case State.RUNNING:
            return Act.LOOK if node.started else Act.LAUNCH
        case State.STOPPING:
            return _ending(node, facts)
    return Act.NOTHING


def _preparing_act(node: NodeFacts, facts: Facts) -> Act:
    """What is sent names the others' addresses, so that all of them come first; and they only meet if all do."""
    if not all(each.asked for each in facts.nodes):
        return Act.NOTHING if node.asked else Act.ASK
    if not all(each.met for each in facts.nodes):
        return Act.MEET
    if node.prepared or node.refused:
        return Act.NOTHING
    return Act.INSTALL if node.sent else Act.PREPARE


def _ending(node: NodeFacts, facts: Facts) -> Act:
    if not node.launched:
        return Act.KILL if node.installing else Act.NOTHING
    if node.term_sent_at is not None:
        return Act.KILL if facts.now - node.term_sent_at >= POLITE else Act.LOOK
    begun = facts.since if facts.state is State.STOPPING else facts.now
    _state, why = next_state(facts)
    patience = ENDS_ITSELF if why == "exit" else timedelta(0)
    return Act.TERM if facts.now - begun >= patience else Act.LOOK
