"""What it costs and loses to stop a job, before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.formats import amounts_text, duration_text
from jobs.book.models import Attempt, Job, JobKind, JobState, Node, WhenDone
from jobs.pages.checkpoints import Saved, newest_checkpoint
from jobs.pages.summary import newest_figures


@dataclass(frozen=True, slots=True)
class Consequences:
    """`costs`: what it loses in a few words, for beside and on the button; "" = nothing that is known."""

    saves: str
    loses: str
    keeps: str
    back: str
    costs: str


def consequences_of(job: Job, attempt: Attempt, now: datetime) -> Consequences:
    nodes = list(attempt.nodes.select_related("instance").order_by("rank"))
    saved = newest_checkpoint(job, attempt)
    figures = newest_figures(attempt)
    step = figures["step"][0] if "step" in figures else None
    lost = step - saved.step if step is not None and saved and saved.step is not None and saved.step <= step else None
    return Consequences(
        saves=_saves(job, nodes),
        loses=_loses(job, saved, lost, now),
        keeps=_keeps(job, saved),
        back=_back(job),
        costs=_costs(job, lost, step),
    )


def rent_of(nodes: Sequence[Node]) -> str:
    """An hour of the machines of a job; "" where a price is not known."""
    rent: dict[str, Decimal] = {}
    for node in nodes:
        if node.instance.price_per_hour is None:
            return ""
        rent[node.instance.currency] = rent.get(node.instance.currency, Decimal(0)) + node.instance.price_per_hour
    return _("%(money)s/h") % {"money": amounts_text(rent)}


def _saves(job: Job, nodes: Sequence[Node]) -> str:
    rent = rent_of(nodes)
    if job.when_done == WhenDone.STOP:
        said = _("%(rent)s: its machines are stopped afterwards, unless somebody else holds them")
        return said % {"rent": rent} if rent else _("the rent of its machines, which are stopped afterwards")
    said = _("nothing by itself: %(rent)s go on until the machines are stopped or used")
    return said % {"rent": rent} if rent else _("nothing by itself: the machines stay on")


def _loses(job: Job, saved: Saved | None, lost: int | None, now: datetime) -> str:
    if job.kind == JobKind.SERVING:
        return _("answers that are under way, and what its caches hold; who asks afterwards finds nobody")
    if job.state in {JobState.QUEUED, JobState.PREPARING}:
        return _("nothing: it has not begun")
    if saved is None:
        return _("what it has not saved: its log speaks of no checkpoint")
    ago = duration_text((now - saved.at).total_seconds())
    if lost is None:
        return _("what it did since its last checkpoint, %(time)s ago") % {"time": ago}
    said = ngettext(
        "%(n)s step since the checkpoint of step %(step)s, %(time)s of work",
        "%(n)s steps since the checkpoint of step %(step)s, %(time)s of work",
        lost,
    )
    return said % {"n": f"{lost:,}", "step": f"{saved.step:,}", "time": ago}


def _keeps(job: Job, saved: Saved | None) -> str:
    log = _("log, figures and findings, and every file on the machines’ own disks")
    if job.checkpoint_path and saved:
        return _("%(log)s; checkpoints in %(path)s") % {"log": log, "path": job.checkpoint_path}
    return log


def _back(job: Job) -> str:
    if job.resume_arguments:
        said = _("“Run again” starts it with %(arguments)s where there is a checkpoint")
        return said % {"arguments": job.resume_arguments}
    return _("“Run again” starts it from its beginning, unless the command finds its checkpoint by itself")


def _costs(job: Job, lost: int | None, step: int | None) -> str:
    if job.kind == JobKind.SERVING:
        return _("drops what is under way")
    lost = lost if lost is not None else step
    if not lost or job.kind != JobKind.TRAINING:
        return ""
    return ngettext("loses %(n)s step", "loses %(n)s steps", lost) % {"n": f"{lost:,}"}
