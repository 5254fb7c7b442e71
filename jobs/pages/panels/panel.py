"""What a panel of a job's page is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job

__all__ = ["JobPanel"]


@dataclass(frozen=True, slots=True)
class JobPanel:
    """`context` gives what the template gets as `panel`, beside `job`, `attempt` and `may_act`; None = there is nothing to show, and no panel.

    The template draws one <section class="panel">, which is put in again when it has changed while a page is looked at; with `keeps` it renews
    itself, and is left alone. `place`: the wide column, the one beside it, or below both in full width.
    """

    name: str
    template: str
    context: Callable[[TeamRequest, Job, Attempt], dict[str, Any] | None]
    place: Literal["main", "side", "foot"] = "main"
    keeps: bool = False
