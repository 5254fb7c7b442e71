"""The terms of a course as its policy has them when it begins, and the way between rows and the pure course."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.shutdown.course import Course, Stage, Terms
from fleet.idle.shutdown.models import IdleStop, IdleStopStage

# Columns of a stop that are the course itself.
COURSE = ("since", "deadline", "delivered_at", "ordered_at", "orders", "told_at", "rests_until", "why")


def terms_to_keep(policy: IdlePolicy) -> dict[str, Any]:
    """JSON-ready. `revision`: a policy that is changed midway begins anew."""
    return {
        "grace_seconds": policy.grace_minutes * 60,
        "hook_seconds": policy.hook_minutes * 60,
        "remind_minutes": sorted({int(minutes) for minutes in policy.warn_minutes if int(minutes) > 0}, reverse=True),
        "stop_without_hook": policy.stop_without_hook,
        "accept_loss": policy.accept_loss,
        "revision": policy.revision,
    }


def terms_of(kept: Mapping[str, Any]) -> Terms:
    return Terms(
        grace=timedelta(seconds=kept["grace_seconds"]),
        hook_timeout=timedelta(seconds=kept["hook_seconds"]),
        remind_before=tuple(timedelta(minutes=minutes) for minutes in kept["remind_minutes"]),
        stop_without_hook=kept["stop_without_hook"],
    )


def course_of(stop: IdleStop) -> Course:
    values = {name: getattr(stop, name) for name in COURSE}
    return Course(Stage(stop.stage), reminded=tuple(timedelta(minutes=minutes) for minutes in stop.reminded), **values)


def columns_of(course: Course) -> dict[str, Any]:
    """A course that went back to watching is over as a row: the next one begins with a row, and a warning, of its own.

    When it is over it keeps its past: deadline, delivery and orders stay as they were.
    """
    if course.stage is Stage.WATCHING:
        return {
            "stage": IdleStopStage.CANCELLED,
            "since": course.since,
            "ended_at": course.since,
            "rests_until": course.rests_until,
            "why": course.why,
        }
    columns: dict[str, Any] = {name: getattr(course, name) for name in COURSE}
    columns["stage"] = IdleStopStage(course.stage.value)
    columns["reminded"] = [int(before.total_seconds() // 60) for before in course.reminded]
    columns["ended_at"] = course.since if course.stage is Stage.STOPPED else None
    return columns
