"""What states, steps and ends of jobs are called, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from jobs.book.models import JobEvent, JobState

Words = Mapping[str, str | Promise]
WHYS: Words = {
    "asked": gettext_lazy("somebody asked for it"),
    "deadline": gettext_lazy("its deadline came"),
    "budget": gettext_lazy("it has cost what it may"),
    "exit": gettext_lazy("the command ended with an error"),
    "not_prepared": gettext_lazy("a machine could not be prepared in time"),
    "no_way": gettext_lazy("its machines do not reach each other"),
    "environment": gettext_lazy("a machine is not what it needs"),
    "install": gettext_lazy("what it needs could not be installed"),
    "lost": gettext_lazy("it was ended from outside, and nobody saw how"),
    "rebooted": gettext_lazy("a machine was started anew under it"),
    "machine_gone": gettext_lazy("a machine was switched off or given back"),
    "unhealthy": gettext_lazy("its server answered no more"),
    "restart": gettext_lazy("somebody asked for a restart"),
}
EVENTS: Words = {
    "prepared": pgettext_lazy("job", "machine prepared"),
    "unfit": pgettext_lazy("job", "machine is not what it needs"),
    "installed": pgettext_lazy("job", "installed what it needs"),
    "not_installed": pgettext_lazy("job", "could not install what it needs"),
    "started": pgettext_lazy("job", "started on the machine"),
    "ended": pgettext_lazy("job", "ended on the machine"),
    "lost_node": pgettext_lazy("job", "nobody knows what became of it on the machine"),
    "unreachable": pgettext_lazy("job", "machine cannot be reached"),
    "no_way": pgettext_lazy("job", "machines do not reach each other"),
    "slow_network": pgettext_lazy("job", "the network between machines is slow"),
    "reached_again": pgettext_lazy("job", "machine is reached again"),
    "stop_asked": pgettext_lazy("job", "stop asked for"),
    "budget_spent": pgettext_lazy("job", "budget spent"),
    "retry": pgettext_lazy("job", "tried again"),
    "not_stopped": pgettext_lazy("job", "machine stays on"),
    "found": pgettext_lazy("job", "the diagnosis found something"),
    "restart_asked": pgettext_lazy("job", "restart asked for"),
    "ready": pgettext_lazy("job", "server is ready"),
    "server_down": pgettext_lazy("job", "server does not answer"),
    "server_up": pgettext_lazy("job", "server answers again"),
}
# Why a machine cannot be reached (Node.error): RemoteError, RunnerError and visit.
ERRORS: Words = {
    "host_key_new": gettext_lazy("its host key is new: look at the fingerprint below and confirm it"),
    "host_key_changed": gettext_lazy("it shows another host key than before: somebody may stand in between"),
    "no_key_fits": gettext_lazy("it does not accept the team's SSH key: add the public key to its authorized_keys"),
    "unreachable": gettext_lazy("nothing answers at its SSH address"),
    "timeout": gettext_lazy("it does not answer in time"),
    "broken": gettext_lazy("the connection broke"),
    "refused_address": gettext_lazy(
        "its address is in a network that the operator of this installation has not allowed"
    ),
    "no_address": gettext_lazy("no SSH address is known of it"),
    "refused": gettext_lazy("the machine refused the step"),
    "environment": gettext_lazy("it cannot work there: see what its check says"),
    "install": gettext_lazy("install.sh failed: see the log"),
    "no_shell": gettext_lazy("it runs no commands over SSH"),
    "bad_answer": gettext_lazy("it answered something else than was asked"),
    "no_interface": gettext_lazy(
        "no address of it is known that others could use: it has no python3 to ask, or no network interface"
    ),
    "port_taken": gettext_lazy("it cannot listen at this port, at which the ranks find each other"),
    "no_way": gettext_lazy(
        "it does not reach the other at this port: open all TCP ports between the machines of a job"
    ),
    "ports_closed": gettext_lazy(
        "the other answers at this port, but not at those that the system chooses: open all TCP ports between the machines of a job"
    ),
}
# How a state is drawn: the mark of a GPU's state that means the same, or of a severity.
MARKS: Mapping[str, str] = {
    JobState.QUEUED: "unknown",
    JobState.PREPARING: "unknown",
    JobState.RUNNING: "working",
    JobState.STOPPING: "starved",
    JobState.SUCCEEDED: "done",
    JobState.FAILED: "stalled",
    JobState.STOPPED: "stopped",
    JobState.LOST: "stalled",
}


def why_text(code: str) -> str:
    return str(WHYS.get(code, code))


def error_text(code: str) -> str:
    return str(ERRORS.get(code, code))


def event_text(event: JobEvent) -> str:
    if event.kind in EVENTS:
        return str(EVENTS[event.kind])
    return str(JobState(event.kind).label) if event.kind in JobState.values else event.kind


def event_detail(values: Mapping[str, Any], detail: str) -> str:
    """What is beside a step: a code is said in words, the rest as it is."""
    said = []
    if (code := values.get("exit_code")) is not None:
        said.append(_("exit code %(code)s") % {"code": code})
    if why := values.get("why"):
        said.append(why_text(str(why)))
    if error := values.get("error"):
        said.append(error_text(str(error)))
    if machine := values.get("machine"):
        said.append(str(machine))
    return " · ".join([*said, *([detail] if detail else [])])
