"""What the diagnosis found, the surest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.findings.models import JobFinding
from jobs.findings.words import reason_text, remedy_text, title_of
from jobs.pages.panels.panel import JobPanel

SURE_DOTS = {"certain": 5, "likely": 4, "possible": 2}


@dataclass(frozen=True, slots=True)
class FindingLine:
    row: JobFinding

    @property
    def title(self) -> str:
        return title_of(self.row.code)

    @property
    def dots(self) -> list[bool]:
        lit = SURE_DOTS.get(self.row.sure, 1)
        return [number < lit for number in range(5)]

    @property
    def reasons(self) -> list[str]:
        texts = (reason_text(reason["code"], reason["values"]) for reason in self.row.because)
        return [text for text in texts if text]

    @property
    def remedies(self) -> list[str]:
        texts = (remedy_text(one["code"], one["values"], one.get("saves_bytes")) for one in self.row.remedies)
        return [text for text in texts if text]

    @property
    def lines(self) -> Sequence[int]:
        return list(self.row.lines)


def finding_lines(attempt: Attempt) -> list[FindingLine]:
    order = list(SURE_DOTS)
    rows = JobFinding.objects.filter(attempt=attempt, gone_at=None)
    return [FindingLine(row) for row in sorted(rows, key=lambda row: order.index(row.sure))]


def context(_request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any] | None:
    found = finding_lines(attempt)
    return {"findings": found} if found else None


PANEL = JobPanel("findings", "jobs/panels/findings.html", context)
