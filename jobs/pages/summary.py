"""The top of a job's page: one sentence, how far it is, and its figures beside what was planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from fleet.formats import bytes_text, duration_text, number_text
from fleet.templatetags.rackrent import recent_clock_text
from jobs.book.models import Attempt, Job, JobKind, JobState, Node
from jobs.metrics.models import JobPoint
from jobs.pages.pace import Moment, Pace, pace_of

# Of these the pace and the newest figures are taken.
POINTS_READ = 200
# A measured time beyond so many times the planned one is drawn as waiting.
SLOW_RATIO = 1.25
NAMES = (
    "step",
    "steps",
    "epoch",
    "loss",
    "eval_loss",
    "learning_rate",
    "seconds_per_step",
    "tokens_per_second",
    "tokens_per_gpu",
    "samples_per_second",
    "memory_bytes",
)
RUNNING: Mapping[str, str | Promise] = {
    JobKind.TRAINING: gettext_lazy("Training on {machines} for {time}."),
    JobKind.SERVING: gettext_lazy("Serving on {machines} for {time}."),
    JobKind.NOTEBOOK: gettext_lazy("A notebook on {machines} for {time}."),
    JobKind.COMMAND: gettext_lazy("Running on {machines} for {time}."),
}
OTHERWISE: Mapping[str, str | Promise] = {
    JobState.QUEUED: gettext_lazy("Waits to be prepared on {machines}, which it holds."),
    JobState.PREPARING: gettext_lazy("{machines} is being prepared: files, repository, secrets."),
    JobState.STOPPING: gettext_lazy("Being ended on {machines}: asked politely, and ended firmly after 20 seconds."),
    JobState.SUCCEEDED: gettext_lazy("Ended well on {machines} after {time}."),
    JobState.FAILED: gettext_lazy("Failed on {machines} after {time}."),
    JobState.STOPPED: gettext_lazy("Stopped on {machines} after {time}."),
    JobState.LOST: gettext_lazy("Lost on {machines} after {time}: nobody saw how it ended."),
}


def sentence_of(job: Job, nodes: Sequence[Node], address_of: Callable[[int], str], now: datetime) -> SafeString:
    """With links to the machines; the first two by name."""
    linked = [(address_of(node.instance_id), node.instance.name) for node in nodes[:2]]
    machines = format_html_join(pgettext("between two machines", " and "), '<a href="{}">{}</a>', linked)
    if len(nodes) > 2:
        machines = format_html(_("{named} and {n} more"), named=machines, n=len(nodes) - 2)
    lasted = ((job.ended_at or now) - job.started_at).total_seconds() if job.started_at else 0
    words = RUNNING[job.kind] if job.state == JobState.RUNNING else OTHERWISE[job.state]
    return format_html(str(words), machines=machines, time=duration_text(lasted))


@dataclass(frozen=True, slots=True)
class Progress:
    """Steps; shares in percent as CSS writes them, whatever the reader's language. `first`: where this attempt took over from an earlier one."""

    step: int
    steps: int
    first: int

    @property
    def step_text(self) -> str:
        return f"{self.step:,}"

    @property
    def steps_text(self) -> str:
        return f"{self.steps:,}"

    @property
    def first_text(self) -> str:
        return f"{self.first:,}" if self.first else ""

    @property
    def before(self) -> str:
        return f"{100 * self.first / self.steps:.1f}"

    @property
    def share(self) -> str:
        return f"{100 * (min(self.step, self.steps) - self.first) / self.steps:.1f}"

    @property
    def percent(self) -> str:
        return f"{100 * min(self.step, self.steps) / self.steps:.0f} %"


@dataclass(frozen=True, slots=True)
class Stat:
    """`at`: when it was read, None = it has no age. `slow`: far behind the plan."""

    name: str
    value: str
    unit: str = ""
    note: str = ""
    at: datetime | None = None
    slow: bool = False


def newest_figures(attempt: Attempt) -> dict[str, tuple[Any, datetime]]:
    """The newest of each figure that the run has told, with its time."""
    rows = JobPoint.objects.filter(attempt=attempt).order_by("-at", "-pk").values("at", *NAMES)[:POINTS_READ]
    figures: dict[str, tuple[Any, datetime]] = {}
    for row in rows:
        for name in NAMES:
            if row[name] is not None:
                figures.setdefault(name, (row[name], row["at"]))
    return figures


def pace_now(attempt: Attempt) -> Pace:
    rows = JobPoint.objects.filter(attempt=attempt, step__isnull=False).order_by("-at", "-pk")
    read = rows.values_list("at", "step", "loss")[:POINTS_READ]
    return pace_of([Moment(at.timestamp(), step, loss) for at, step, loss in reversed(read) if step is not None])


def progress_of(attempt: Attempt, figures: Mapping[str, tuple[Any, datetime]]) -> Progress | None:
    if "step" not in figures or not figures.get("steps", (0,))[0]:
        return None
    steps, first = figures["steps"][0], 0
    if attempt.number > 1:
        first = JobPoint.objects.filter(attempt=attempt).aggregate(first=Min("step"))["first"] or 0
    return Progress(figures["step"][0], steps, min(first, steps, figures["step"][0]))


def stats_of(job: Job, figures: Mapping[str, tuple[Any, datetime]], pace: Pace, now: datetime) -> list[Stat]:
    return [*_speed(job, figures, pace), *_quality(figures, pace), *_end(job, figures, pace, now)]


def _speed(job: Job, figures: Mapping[str, tuple[Any, datetime]], pace: Pace) -> Iterator[Stat]:
    planned: float | None = job.predicted.get("seconds_per_step")
    seconds, at = figures.get("seconds_per_step", (pace.seconds_per_step, figures.get("step", (0, None))[1]))
    if seconds is not None:
        note = _("plan %(figure)s s") % {"figure": seconds_text(planned)} if planned else ""
        slow = bool(planned and seconds > SLOW_RATIO * planned)
        yield Stat(_("Step time"), seconds_text(seconds), " s", note, at, slow)
    for name, words in (("tokens_per_second", _("Tokens")), ("tokens_per_gpu", _("Tokens of a GPU"))):
        if name in figures:
            value, at = figures[name]
            wanted: float | None = job.predicted.get(name)
            note = _("plan %(figure)s/s") % {"figure": large_text(wanted)} if wanted else ""
            yield Stat(words, large_text(value), _("/s"), note, at, bool(wanted and value * SLOW_RATIO < wanted))
    if "samples_per_second" in figures:
        value, at = figures["samples_per_second"]
        yield Stat(_("Samples"), number_text(value), _("/s"), "", at)


def _quality(figures: Mapping[str, tuple[Any, datetime]], pace: Pace) -> Iterator[Stat]:
    if "loss" in figures:
        value, at = figures["loss"]
        yield Stat(_("Loss"), f"{value:.4g}", "", _loss_note(figures, pace), at)
    if "memory_bytes" in figures:
        value, at = figures["memory_bytes"]
        number, unit = bytes_text(value).rsplit(" ", 1)
        yield Stat(_("GPU memory, peak"), number, f" {unit}", "", at)
    if "epoch" in figures and "steps" not in figures:
        yield Stat(_("Epoch"), f"{figures['epoch'][0]:.4g}", "", "", figures["epoch"][1])


def _loss_note(figures: Mapping[str, tuple[Any, datetime]], pace: Pace) -> str:
    if "eval_loss" in figures:
        return _("evaluated %(loss)s") % {"loss": f"{figures['eval_loss'][0]:.4g}"}
    if pace.loss_per_step is None:
        return ""
    gain = 1000 * pace.loss_per_step
    words = _("falls %(figure)s per 1,000 steps") if gain < 0 else _("rises %(figure)s per 1,000 steps")
    return words % {"figure": f"{abs(gain):.2g}"}


def _end(job: Job, figures: Mapping[str, tuple[Any, datetime]], pace: Pace, now: datetime) -> Iterator[Stat]:
    if job.state != JobState.RUNNING or not {"step", "steps"} <= figures.keys():
        return
    step, at = figures["step"]
    left = pace.seconds_left(step, figures["steps"][0])
    if left is None:
        return
    ends = at + timedelta(seconds=left)
    late = job.deadline_at is not None and ends > job.deadline_at
    note = _("in %(time)s") % {"time": duration_text(max(0.0, (ends - now).total_seconds()))}
    if late and job.deadline_at is not None:
        note = _("is stopped %(time)s") % {"time": recent_clock_text(job.deadline_at)}
    yield Stat(_("Ends"), recent_clock_text(ends), "", note, at, late)


def seconds_text(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 1000 else f"{seconds:,.0f}"


def large_text(value: float) -> str:
    """Counts a second: "592 k", "1.88 M"."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (size > 1e3 and value >= size):
            return f"{number_text(value / size)} {sign}"
    return number_text(value)
