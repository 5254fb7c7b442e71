"""What somebody wants run, before it is a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from django.utils.functional import Promise

from fleet.teams.models import Project
from jobs.book.models import JobKind, WhenDone


class JobRefused(ValueError):
    """Why a job is not begun; `field` names what has to be changed."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


class Sent(Protocol):
    """jobs.uploads.models.JobUpload."""

    pk: Any
    name: str
    team_id: int
    dropped_at: datetime | None


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: the columns of Job of the same names; `secrets` are plain here and sealed in the row."""

    name: str
    command: str
    kind: JobKind = JobKind.COMMAND
    project: Project | None = None
    plan: str = ""
    launcher: str = ""
    predicted: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Mapping[str, Any]] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    repository: str = ""
    revision: str = ""
    # Unpacked on each machine where the command runs.
    upload: Sent | None = None
    data_path: str = ""
    checkpoint_path: str = ""
    processes_per_node: int | None = None
    retries: int = 0
    resume_arguments: str = ""
    # book.serving.Serving: at least its port where the kind is serving.
    serving: Mapping[str, Any] = field(default_factory=dict)
    # Whether the launcher's install.sh among `files` runs first, and whether it starts on a machine that the check says it cannot work on.
    installs: bool = False
    starts_anyway: bool = False
    when_done: WhenDone = WhenDone.IDLE
    deadline_at: datetime | None = None
    budget_amount: Decimal | None = None
    budget_currency: str = ""
