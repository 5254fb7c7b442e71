"""The course of one idle stop: from the first quiet window to a stop that the provider shows. Pure: facts in, the next state and what to do out.

    watching ──idle──► warned ──accepted by a channel──► grace ──deadline──► prestop ──hook over, still idle──► stopping ──► verifying ──► stopped
       ▲                  │ nobody reached: no stop        │                    │                                 │ │            │
       └──────────────────┴─ use, hold, snooze, veto ──────┴────────────────────┘                                 │ └──refused───┴──► failed, again later
                                                                                                                   └ from here on only the provider decides

Office hours that begin in grace put the deadline off until they end. What was written down and never ordered is called off like a warning.

Two facts let it go on, and without either it goes back: a verdict of idle that is newer than the last step, and nobody's word against it. A
stop is ordered after it was written down that it will be (`stopping`), so that after a crash it is looked for, never ordered blindly again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Stage(StrEnum):
    WATCHING = "watching"
    WARNED = "warned"
    GRACE = "grace"
    PRESTOP = "prestop"
    STOPPING = "stopping"
    VERIFYING = "verifying"
    STOPPED = "stopped"
    FAILED = "failed"


# Whatever is seen in these goes back to watching when use or somebody's word is.
STOPPABLE = frozenset({Stage.WARNED, Stage.GRACE, Stage.PRESTOP})

# Of a stop that failed: nobody asks for it any more. Not knowing whether it is idle changes nothing: it was, and it burns.
NO_LONGER_WANTED = frozenset({"held", "active", "snoozed", "policy", "pinned", "unmanaged"})


class Act(StrEnum):
    """What whoever carries the course does after the new state is written down."""

    WARN = "warn"
    REMIND = "remind"
    TELL_PUT_OFF = "tell_put_off"
    TELL_CANCELLED = "tell_cancelled"
    RUN_HOOK = "run_hook"
    ORDER = "order"
    READ = "read"
    TELL_FAILED = "tell_failed"
    TELL_STOPPED = "tell_stopped"


class Hook(StrEnum):
    """What became of the machine's own pre-stop action."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    # It said no, or did not end in time: nobody knows what was saved.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Terms:
    """Of the policy. `grace`: from the accepted warning to the stop. `undelivered_after`: how long a warning may wait for a channel.

    `remind_before`: so long before the deadline people are told again; what lies before the warning itself is left out.
    """

    grace: timedelta = timedelta(minutes=30)
    undelivered_after: timedelta = timedelta(minutes=15)
    hook_timeout: timedelta = timedelta(minutes=10)
    # A failed hook keeps the machine, unless the policy says that its data may be lost.
    stop_without_hook: bool = False
    remind_before: tuple[timedelta, ...] = ()
    # How old evidence may be when a stop is ordered on it.
    fresh: timedelta = timedelta(minutes=2)
    retry_after: timedelta = timedelta(minutes=10)
    tell_every: timedelta = timedelta(hours=1)
    # After somebody said no, the machine is left alone for so long.
    rest_after_word: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is so at `now`. `idle`: the newest verdict, None = unknown; `judged_at`: of when it is.

    `held`: somebody's word or a policy keeps the machine. `snoozed_until`: asked for later. `delivered`: a channel accepted the warning of
    this course. `off_and_unbilled`: what the provider was last read to say of it, None = not read since the order. `refused`: the order was
    answered with no. `barred`: why it must not be stopped although it is idle (policy, account, data), "" for nothing. `office_until`: when the
    office hours end that last now. `withdrawn`: why an order was taken back before its provider heard of it.
    """

    now: datetime
    idle: bool | None
    judged_at: datetime | None
    held: bool = False
    snoozed_until: datetime | None = None
    delivered: bool = False
    hook: Hook = Hook.NONE
    off_and_unbilled: bool | None = None
    refused: bool = False
    barred: str = ""
    office_until: datetime | None = None
    withdrawn: str = ""

    @property
    def in_office(self) -> bool:
        return self.office_until is not None and self.office_until > self.now


@dataclass(frozen=True, slots=True)
class Course:
    """`since`: of the present stage. `deadline`: when it stops unless something comes between. `orders`: how often a stop was ordered."""

    stage: Stage = Stage.WATCHING
    since: datetime | None = None
    deadline: datetime | None = None
    delivered_at: datetime | None = None
    ordered_at: datetime | None = None
    orders: int = 0
    told_at: datetime | None = None
    # Not before this a new course begins.
    rests_until: datetime | None = None
    why: str = ""
    # Of the reminders those that went out, by how long before the deadline.
    reminded: tuple[timedelta, ...] = ()


Step = tuple[Course, tuple[Act, ...]]


def advance(course: Course, facts: Facts, terms: Terms) -> Step:
    """One step. The same facts again change nothing more, so that a step that was carried out twice by mistake does no harm."""
    if course.stage in STOPPABLE and (word := against(facts)):
        return call_off(facts, terms, word)
    return _told_on(_STEPS[course.stage](course, facts, terms), facts, terms)


def against(facts: Facts) -> str:
    """What speaks against a stop, "" for nothing. Unknown is against it."""
    if facts.held:
        return "held"
    if facts.snoozed_until is not None and facts.snoozed_until > facts.now:
        return "snoozed"
    if facts.barred:
        return facts.barred
    if facts.idle is None:
        return "unknown"
    return "" if facts.idle else "active"


def call_off(facts: Facts, terms: Terms, why: str) -> Step:
    """Back to watching. Also of what is written down as `stopping` and was never ordered."""
    rests = facts.snoozed_until if why == "snoozed" else None
    if why in {"held", "hook_failed", "undelivered"}:
        rests = facts.now + terms.rest_after_word
    return Course(since=facts.now, rests_until=rests, why=why), (Act.TELL_CANCELLED,)


def _watch(course: Course, facts: Facts, _terms: Terms) -> Step:
    resting = course.rests_until is not None and course.rests_until > facts.now
    if resting or facts.in_office or against(facts):
        return course, ()
    return Course(Stage.WARNED, since=facts.now), (Act.WARN,)


def _warn(course: Course, facts: Facts, terms: Terms) -> Step:
    assert course.since is not None
    if facts.delivered:
        return (
            replace(
                course,
                stage=Stage.GRACE,
                since=facts.now,
                delivered_at=facts.now,
                deadline=facts.now + terms.grace,
            ),
            (),
        )
    if facts.now - course.since >= terms.undelivered_after:
        return call_off(facts, terms, "undelivered")
    return course, ()


def _grace(course: Course, facts: Facts, terms: Terms) -> Step:
    assert course.deadline is not None
    if facts.office_until is not None and facts.in_office and facts.office_until > course.deadline:
        return replace(course, deadline=facts.office_until, reminded=()), (Act.TELL_PUT_OFF,)
    if facts.now >= course.deadline:
        return replace(course, stage=Stage.PRESTOP, since=facts.now), (Act.RUN_HOOK,)
    due = _reminders_due(course, facts, terms)
    return (replace(course, reminded=course.reminded + due), (Act.REMIND,)) if due else (course, ())


def _reminders_due(course: Course, facts: Facts, terms: Terms) -> tuple[timedelta, ...]:
    """Several that are late are one message."""
    assert course.deadline is not None
    assert course.since is not None
    due = []
    for before in terms.remind_before:
        at = course.deadline - before
        if course.since < at <= facts.now and before not in course.reminded:
            due.append(before)
    return tuple(due)


def _prestop(course: Course, facts: Facts, terms: Terms) -> Step:
    assert course.since is not None
    if facts.in_office:
        again = replace(course, stage=Stage.GRACE, since=facts.now, deadline=facts.office_until, reminded=())
        return again, (Act.TELL_PUT_OFF,)
    late = facts.now - course.since >= terms.hook_timeout
    if facts.hook is Hook.RUNNING and not late:
        return course, ()
    unsaved = facts.hook is Hook.FAILED or (facts.hook is Hook.RUNNING and late)
    if unsaved and not terms.stop_without_hook:
        return call_off(facts, terms, "hook_failed")
    if not _is_judged_anew(course, facts, terms):
        return course, ()
    return (
        replace(course, stage=Stage.STOPPING, since=facts.now, ordered_at=facts.now, orders=course.orders + 1),
        (Act.ORDER,),
    )


def _stopping(course: Course, facts: Facts, terms: Terms) -> Step:
    """The order may have been lost with the one who carried it: the provider is asked, not ordered again."""
    if facts.withdrawn:
        return call_off(facts, terms, facts.withdrawn)
    if facts.refused:
        return _failed(course, facts, terms)
    return replace(course, stage=Stage.VERIFYING, since=facts.now), (Act.READ,)


def _verify(course: Course, facts: Facts, terms: Terms) -> Step:
    assert course.since is not None
    if facts.off_and_unbilled:
        return replace(course, stage=Stage.STOPPED, since=facts.now), (Act.TELL_STOPPED,)
    if facts.withdrawn:
        return call_off(facts, terms, facts.withdrawn)
    if facts.refused or facts.now - course.since >= terms.retry_after:
        return _failed(course, facts, terms)
    return course, (Act.READ,)


def _told_on(step: Step, facts: Facts, terms: Terms) -> Step:
    """Of a stop that has failed before people hear every hour, also while another order of it is being proved."""
    course, acts = step
    if course.stage is not Stage.VERIFYING or course.told_at is None or not _is_time_to_tell(course, facts, terms):
        return step
    return replace(course, told_at=facts.now), (*acts, Act.TELL_FAILED)


def _failed(course: Course, facts: Facts, terms: Terms) -> Step:
    """Told at once and every hour after; ordered again only on new evidence that it is idle and nobody's word against it."""
    if course.stage is not Stage.FAILED:
        failed = replace(course, stage=Stage.FAILED, since=facts.now)
        return (
            (replace(failed, told_at=facts.now), (Act.TELL_FAILED,))
            if _is_time_to_tell(course, facts, terms)
            else (failed, ())
        )
    if facts.off_and_unbilled:
        return replace(course, stage=Stage.STOPPED, since=facts.now), (Act.TELL_STOPPED,)
    word = against(facts)
    if word in NO_LONGER_WANTED:
        # It runs on and is in use again, or nobody wants it stopped: that is no failed stop any more.
        return call_off(facts, terms, word)
    if not word and not facts.in_office and _may_try_again(course, facts, terms):
        again = replace(course, stage=Stage.STOPPING, since=facts.now, ordered_at=facts.now, orders=course.orders + 1)
        return again, (Act.ORDER,)
    if _is_time_to_tell(course, facts, terms):
        return replace(course, told_at=facts.now), (Act.TELL_FAILED, Act.READ)
    return course, (Act.READ,)


def _is_time_to_tell(course: Course, facts: Facts, terms: Terms) -> bool:
    return course.told_at is None or facts.now - course.told_at >= terms.tell_every


def _may_try_again(course: Course, facts: Facts, terms: Terms) -> bool:
    assert course.since is not None
    return _is_judged_anew(course, facts, terms) and facts.now - course.since >= terms.retry_after


def _is_judged_anew(course: Course, facts: Facts, terms: Terms) -> bool:
    """The verdict that lets a stop be ordered was made in this stage, and just now."""
    assert course.since is not None
    if facts.judged_at is None or facts.judged_at < course.since:
        return False
    # From a clock that was put back, "just now" lies in the future.
    return abs(facts.now - facts.judged_at) <= terms.fresh


def _ended(course: Course, _facts: Facts, _terms: Terms) -> Step:
    return course, ()


_STEPS = {
    Stage.WATCHING: _watch,
    Stage.WARNED: _warn,
    Stage.GRACE: _grace,
    Stage.PRESTOP: _prestop,
    Stage.STOPPING: _stopping,
    Stage.VERIFYING: _verify,
    Stage.STOPPED: _ended,
    Stage.FAILED: _failed,
}
