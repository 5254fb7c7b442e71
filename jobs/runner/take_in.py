"""What a visit to a machine found, as rows: in the transaction and under the claim of whoever sent it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from jobs.book.events import note
from jobs.book.models import Attempt, JobState, Node
from jobs.logs.part import Part, ready
from jobs.logs.store import store_part
from jobs.metrics.store import store_lines
from jobs.runner.course import Act
from jobs.runner.machine import Seen
from jobs.runner.meeting import note_interfaces
from jobs.runner.preparing import take_in_preparation
from jobs.runner.visit import Report

# Is told once of each kind, not at every visit.
TOLD_AFTER = 3


def take_in(attempt: Attempt, node: Node, report: Report, *, secrets: Mapping[str, str], at: datetime) -> None:
    if report.error:
        _failed(attempt, node, report, at)
        return
    if node.failures >= TOLD_AFTER:
        note(attempt.job, "reached_again", at=at, attempt=attempt, node=node)
    node.reached_at, node.failures, node.error, node.error_detail = at, 0, "", ""
    node.address = str(report.address)
    if report.act is Act.ASK:
        note_interfaces(node, report)
    if report.act in {Act.PREPARE, Act.INSTALL} and has_read(node, report):
        take_in_preparation(attempt, node, report, at)
    if report.act is Act.KILL and node.launched_at is None and not report.signalled:
        node.state = JobState.STOPPED
    if report.seen is not None:
        _seen(attempt, node, report.seen, at, is_read=has_read(node, report))
        if report.act is Act.KILL and report.seen.is_nowhere and not report.signalled and node.state != JobState.LOST:
            # It was written down that it is launched, and the machine never heard of it.
            node.state, node.error = JobState.LOST, "lost"
    node.save()
    is_last = is_silent(report.seen) and has_read(node, report)
    for part in ready(report.parts, secrets.values(), is_last=is_last):
        _keep(attempt, node, part, at=at)


def _failed(attempt: Attempt, node: Node, report: Report, at: datetime) -> None:
    """It runs on without us: nothing is said of the job."""
    node.failures += 1
    node.error, node.error_detail = report.error[:40], report.detail[:300]
    node.save(update_fields=["failures", "error", "error_detail"])
    if node.failures == TOLD_AFTER or (
        node.failures == 1 and report.error in {"host_key_new", "host_key_changed", "no_key_fits"}
    ):
        note(
            attempt.job,
            "unreachable",
            at=at,
            attempt=attempt,
            node=node,
            detail=report.detail,
            values={"error": report.error},
        )


def is_silent(seen: Seen | None) -> bool:
    """Whether nobody writes to the log any more: a line without an end is one then."""
    return seen is not None and not seen.alive and not seen.installing


def has_read(node: Node, report: Report) -> bool:
    """Whether its log was read to where it stood: a run is not over while its last words are still on the machine."""
    end = report.parts[-1].offset + len(report.parts[-1].data) if report.parts else node.log_offset
    return report.seen is None or report.ran_dry or end >= report.seen.log_size


def _seen(attempt: Attempt, node: Node, seen: Seen, at: datetime, *, is_read: bool) -> None:
    node.log_size, node.pid, node.boot_id = seen.log_size, seen.pid, seen.boot_id
    if seen.launched and node.started_at is None:
        node.started_at, node.state = at, JobState.RUNNING
        note(attempt.job, "started", at=at, attempt=attempt, node=node)
    if node.ended_at is not None or not is_read:
        return
    if seen.exit_code is not None and not seen.alive:
        node.ended_at, node.exit_code = at, seen.exit_code
        node.state = JobState.SUCCEEDED if seen.exit_code == 0 else JobState.FAILED
        note(attempt.job, "ended", at=at, attempt=attempt, node=node, values={"exit_code": seen.exit_code})
    elif seen.is_lost or (node.started_at is not None and seen.is_nowhere):
        node.state, node.error = JobState.LOST, "rebooted" if seen.rebooted else "lost"
        note(attempt.job, "lost_node", at=at, attempt=attempt, node=node, values={"why": node.error})


def _keep(attempt: Attempt, node: Node, part: Part, *, at: datetime) -> None:
    """Progress is read from the first machine: the others print the same. What is installed says nothing of it."""
    first_line = store_part(node=node, part=part, at=at)
    if first_line and node.rank == 0 and node.launched_at is not None:
        lines = part.data.decode("utf-8", "replace").split("\n")
        store_lines(attempt=attempt, lines=list(enumerate(lines, start=first_line)), at=at)
