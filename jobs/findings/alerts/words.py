"""What alerts about jobs say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.places import register_place
from fleet.alerts.words import register_closed, register_words
from jobs.book.words import error_text, why_text
from jobs.findings.alerts.judge import (
    DEADLINE,
    DEVICE,
    DISK,
    DIVERGED,
    FAILED,
    LATE,
    LEAK,
    LOST,
    MEMORY,
    SLOW,
    STALLED,
    UNREACHABLE,
)
from jobs.findings.words import title_of

Values = Mapping[str, Any]
# The first part of every signal's kind and every subject.
JOB = "job"
BEGUN_AGAIN, ENDED, OLD = "job_begun_again", "job_ended", "job_old"
CLOSED: Mapping[str, str | Promise] = {
    BEGUN_AGAIN: gettext_lazy("the job was begun again"),
    ENDED: gettext_lazy("the job has ended"),
    OLD: gettext_lazy("it was told for a day"),
}
CAUSES = (
    Cause(
        FAILED,
        gettext_lazy("failed"),
        gettext_lazy("Read on its page what was found and the end of its log, mend that, and run it again."),
    ),
    Cause(
        LOST,
        gettext_lazy("was lost"),
        gettext_lazy("Look whether its machines are there, and go on from its last checkpoint: run it again."),
    ),
    Cause(
        DEADLINE,
        gettext_lazy("and its deadline do not go together"),
        gettext_lazy(
            "It is stopped when its deadline comes. See that a checkpoint is written before, or begin it again with a later one."
        ),
        quietable=False,
    ),
    Cause(
        UNREACHABLE,
        gettext_lazy("cannot be reached"),
        gettext_lazy(
            "The job runs on meanwhile, unseen. Look at the machine's address and host key on the job's page."
        ),
    ),
    Cause(
        STALLED,
        gettext_lazy("makes no progress"),
        gettext_lazy(
            "Look on its page which rank waits for which, and start it again from its last checkpoint: GPUs that wait cost the same."
        ),
    ),
    Cause(
        DIVERGED,
        gettext_lazy("computes with a loss that is lost"),
        gettext_lazy(
            "Stop it and go on from a checkpoint before that step, with a lower learning rate: every further step is rent for nothing."
        ),
    ),
    Cause(
        DEVICE,
        gettext_lazy("computes on the CPU"),
        gettext_lazy(
            "Stop it, install a build of the framework with CUDA that fits the driver, and run it again: its GPUs are paid for and do nothing."
        ),
    ),
    Cause(
        LEAK,
        gettext_lazy("takes more and more memory"),
        gettext_lazy(
            "Restart the server at a quiet time before the memory is full, and look on its page for what may cause it."
        ),
    ),
    Cause(
        LATE,
        gettext_lazy("answers late"),
        gettext_lazy("Look on its page whether requests wait or compute, and do what stands there first."),
    ),
    Cause(
        MEMORY,
        gettext_lazy("runs out of GPU memory"),
        gettext_lazy("Look on its page at what gives most memory back."),
    ),
    Cause(
        DISK,
        gettext_lazy("has no place left to write"),
        gettext_lazy("Remove old checkpoints and caches before the next one is written."),
    ),
    Cause(
        SLOW,
        gettext_lazy("is slower than it has to be"),
        gettext_lazy("Look on its page for whom its GPUs wait, and do what stands there first."),
    ),
)


def alert_words(values: Values) -> str:
    words = _SAYS.get(str(values["what"]))
    return str(words(values)) if words else title_of(str(values["finding"]))


def _failed(values: Values) -> str:
    parts = [why_text(str(values["why"]))] if values["why"] else []
    if "code" in values:
        parts.append(_("exit code %(code)s") % {"code": values["code"]})
    if values["finding"]:
        parts.append(title_of(str(values["finding"])))
    return _("; ").join(parts)


def _moment(text: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(text)), "Y-m-d H:i")


def _lost(values: Values) -> str:
    return why_text(str(values["why"])) if values["why"] else _("nobody can say what became of it")


def _missed(values: Values) -> str:
    return _("at this pace it will not be done by its deadline, %(at)s") % {"at": _moment(values["deadline"])}


def _unreachable(values: Values) -> str:
    return _("%(machine)s: %(error)s") % {"machine": values["machine"], "error": error_text(str(values["error"]))}


_SAYS: Mapping[str, Callable[[Values], str]] = {
    "failed": _failed,
    "lost": _lost,
    "deadline_over": lambda _values: _("it was stopped when its deadline came"),
    "deadline_missed": _missed,
    "deadline_ahead": lambda values: _("it will be stopped at %(at)s") % {"at": _moment(values["deadline"])},
    "unreachable": _unreachable,
}


def register() -> None:
    for cause in CAUSES:
        register_cause(cause)
    register_words(JOB, alert_words, named=JOB)
    register_closed(CLOSED)
    register_place(JOB, "job", gettext_lazy("Open the job"))
