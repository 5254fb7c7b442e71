"""Findings as rows: one stands per attempt and code, is brought up to date, and stays when it is not found any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from django.db import transaction

from jobs.book.events import note
from jobs.book.models import Attempt
from jobs.diagnosis.diagnose import diagnose
from jobs.diagnosis.finding import Finding
from jobs.findings.gather import gather
from jobs.findings.models import JobFinding


def examine(attempt: Attempt, *, now: datetime) -> list[JobFinding]:
    """Looks at all there is of it now. Raises StoreError."""
    return keep(attempt, diagnose(gather(attempt, now=now)), now=now)


@transaction.atomic
def keep(attempt: Attempt, found: Sequence[Finding], *, now: datetime) -> list[JobFinding]:
    """Returns those that stand, the surest first."""
    Attempt.objects.select_for_update().get(pk=attempt.pk)
    known = {row.code: row for row in JobFinding.objects.filter(attempt=attempt)}
    standing = []
    for finding in _first_of_each(found):
        row = known.get(finding.code)
        if row is None or row.gone_at is not None:
            note(attempt.job, "found", at=now, attempt=attempt, values={"code": finding.code})
            row = row or JobFinding(attempt=attempt, code=finding.code)
            row.found_at = now
        _write(row, finding, now)
        standing.append(row)
    gone = set(known) - {row.code for row in standing}
    JobFinding.objects.filter(attempt=attempt, code__in=gone, gone_at=None).update(gone_at=now)
    return standing


def _first_of_each(found: Sequence[Finding]) -> list[Finding]:
    """Two symptoms of versions are two findings of one code: the first says what to mend first."""
    return list({finding.code: finding for finding in reversed(found)}.values())[::-1]


def _write(row: JobFinding, finding: Finding, now: datetime) -> None:
    row.sure = finding.sure.value
    row.because = [asdict(reason) for reason in finding.because]
    row.remedies = [asdict(remedy) for remedy in finding.remedies]
    row.lines, row.gpus = list(finding.lines), list(finding.gpus)
    row.since = datetime.fromtimestamp(finding.since, UTC) if finding.since else None
    row.seen_at, row.gone_at = now, None
    row.save()
