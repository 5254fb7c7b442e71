"""A machine is looked at and gets what a job needs, before anything is launched there: what a visit found of that, as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

from fleet.inventory.environments.verdicts import gpu_named
from jobs.book.events import note
from jobs.book.models import Attempt, Job, JobState, Node
from jobs.plans.commands import INSTALL
from jobs.plans.facts import read_facts
from jobs.plans.judge import is_refused, judge
from jobs.runner.course import Act
from jobs.runner.visit import Report

# Of Node.error: why nothing is launched on it.
UNFIT = frozenset({"environment", "install"})


def install_digest(job: Job) -> str:
    """Names what the job's install.sh installs: the same text, the same environment."""
    text = next((str(file["text"]) for file in job.files if file["path"] == INSTALL), "")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def is_installing(node: Node) -> bool:
    """Or may be: it was told to, and nobody has seen the end of it."""
    return (
        node.install_at is not None and node.prepared_at is None and node.state in {JobState.QUEUED, JobState.PREPARING}
    )


def take_in_preparation(attempt: Attempt, node: Node, report: Report, at: datetime) -> None:
    """Changes the node, which whoever calls saves."""
    node.state = JobState.PREPARING
    if report.act is Act.PREPARE:
        node.uploaded_at = at
    elif not has_installed(attempt, node, report, at):
        return
    if report.facts is not None and not fits(attempt, node, report.facts, at):
        node.state, node.error = JobState.FAILED, "environment"
        note(attempt.job, "unfit", at=at, attempt=attempt, node=node)
    elif node.install_at is not None or not attempt.job.installs:
        node.prepared_at = at
        note(attempt.job, "prepared", at=at, attempt=attempt, node=node)


def has_installed(attempt: Attempt, node: Node, report: Report, at: datetime) -> bool:
    """Where it failed, or ended without a word, the node is refused."""
    seen = report.seen
    if seen is None or seen.installing:
        return False
    if seen.install_code == 0:
        note(attempt.job, "installed", at=at, attempt=attempt, node=node)
        return True
    node.state, node.error = JobState.FAILED, "install"
    note(attempt.job, "not_installed", at=at, attempt=attempt, node=node, values={"exit_code": seen.install_code})
    return False


def fits(attempt: Attempt, node: Node, answer: Mapping[str, str], at: datetime) -> bool:
    """Keeps what the machine says of itself, and what speaks against it. True also where the job starts anyway."""
    job, facts = attempt.job, read_facts(answer)
    card = gpu_named(facts.gpus[0].name) if facts.gpus else None
    remarks = judge(facts, job.predicted, gpu=card, installs=job.installs and node.install_at is None)
    warnings = [remark.written() for remark in remarks]
    node.facts = {**node.facts, **facts.values(), "warnings": warnings, "looked_at": at.isoformat()}
    return job.starts_anyway or not is_refused(remarks)
