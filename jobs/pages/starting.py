"""What the form of a new job begins with: another job, a plan of the planner, a notebook, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from fleet.teams.access import TeamRequest
from jobs.book.models import Job, WhenDone
from jobs.pages.serving_fields import PREFIX
from jobs.plans.draft import Draft, draft_of
from jobs.plans.notebook import notebook_values

# Without a field of their own, from the job or the plan that it is like.
CARRIED = ("plan", "launcher", "predicted", "files")
CARRIED_OF_JOBS = (*CARRIED, "upload")
LIKED = (
    "name",
    "kind",
    "command",
    "project",
    "repository",
    "revision",
    "data_path",
    "checkpoint_path",
    "processes_per_node",
    "retries",
    "resume_arguments",
    "when_done",
    "installs",
    "starts_anyway",
    "budget_amount",
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """`carried`: columns of Order that no field shows."""

    initial: Mapping[str, Any] = field(default_factory=dict)
    carried: Mapping[str, Any] = field(default_factory=dict)
    like: Job | None = None
    draft: Draft | None = None
    is_notebook: bool = False

    @property
    def predicted(self) -> Mapping[str, Any]:
        predicted: Mapping[str, Any] = self.carried.get("predicted", {})
        return predicted


def beginning_of(request: TeamRequest) -> Beginning:
    """Of the address: `like=` a job, `plan=` with `launcher=`, or `notebook`. Raises PlanRefused, and Http404 for a job that is not there."""
    like, launcher = request.GET.get("like", ""), request.GET.get("launcher", "")
    if like.isdecimal() and len(like) < 19:
        known = get_object_or_404(Job, pk=int(like), team=request.team)
        return Beginning(initial_of_job(known), {name: getattr(known, name) for name in CARRIED_OF_JOBS}, like=known)
    if launcher:
        draft = draft_of(plan=request.GET.get("plan", "")[:4000], launcher=launcher)
        return Beginning(initial_of_draft(draft), {name: getattr(draft, name) for name in CARRIED}, draft=draft)
    if "notebook" in request.GET:
        return beginning_of_notebook()
    return Beginning()


def beginning_of_notebook() -> Beginning:
    values = notebook_values()
    initial = {
        **values,
        "name": str(_("Notebook")),
        "environment": pairs_text(values["environment"]),
        "secrets": pairs_text(values["secrets"]),
    }
    return Beginning(initial, {"files": values["files"]}, is_notebook=True)


def initial_of_job(job: Job) -> dict[str, Any]:
    """Its secrets have to be typed again."""
    attempt = job.attempts.order_by("-number").first()
    return {
        **{name: getattr(job, name) for name in LIKED},
        **{f"{PREFIX}{name}": value for name, value in job.serving.items()},
        **({"budget_currency": job.budget_currency} if job.budget_currency else {}),
        "machines": [node.instance_id for node in attempt.nodes.all()] if attempt else [],
        "environment": pairs_text(job.environment),
        "secrets": "\n".join(f"{name}=" for name in job.secret_names),
    }


def pairs_text(pairs: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in pairs.items())


def initial_of_draft(draft: Draft) -> dict[str, Any]:
    """What is asked for stands without a value."""
    return {
        "name": draft.name,
        "kind": draft.kind,
        "command": draft.command,
        "processes_per_node": draft.gpus_per_machine,
        "environment": "\n".join(f"{each.name}=" for each in draft.asked),
        "installs": draft.installs,
        "when_done": WhenDone.IDLE,
        **{f"{PREFIX}{name}": value for name, value in draft.serving.items()},
    }
