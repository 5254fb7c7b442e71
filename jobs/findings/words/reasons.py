"""Why a rule came to its finding. Values: bytes, shares and numbers in the form of the page."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

REASONS: Mapping[str, str | Promise] = {
    "tried": _("It asked for %(bytes)s when %(free)s of %(total)s was free."),
    "others": _("Other processes hold %(bytes)s of it."),
    "unused": _("PyTorch had set aside %(bytes)s that it could not use."),
    "before_first_step": _("It happened before the first step."),
    "predicted": _("The plan reckoned with %(bytes)s."),
    "context": _("%(asked)s tokens are asked for, and %(fits)s fit."),
    "preempted": _("Requests were thrown out of the cache %(times)s times and computed again."),
    "cache_full": _("The cache was full in %(share)s of the readings, and requests waited in %(waiting)s."),
    "host_memory": _("The machine used %(share)s of its %(total)s."),
    "killed": _("The process was ended from outside with SIGKILL."),
    "disk_used": _("The disk is %(share)s full."),
    "symptom": _("%(says)s"),
    "says_cpu": _("The log says so itself."),
    "cpu_works": _("The CPU was at %(cpu)s %%, no GPU above %(gpu)s %%, and steps went on."),
    "lost_rank": _("Rank %(rank)s was the first that failed."),
    "collective_timeout": _("The others gave up waiting for it in a collective operation."),
    "busy_at_rest": _("%(gpus)s GPUs say 100 %% while they draw what they draw at rest."),
    "no_step": _("No step for %(seconds)s s, where one takes %(usual)s s."),
    "loss_nan": _("At step %(step)s."),
    "loss_up": _("From about %(before)s to about %(now)s."),
    "hot": _("In %(share)s of the readings the driver had lowered the clocks for heat."),
    "capped": _("The limit is %(watts)s W, and %(share)s of the readings were at it."),
    "gpus_wait": _("GPUs were busy %(utilization)s %% of the time."),
    "iowait": _("The CPU waited for disks %(percent)s %% of the time."),
    "pressure_io": _("Something waited for disks %(percent)s %% of the time."),
    "disk_busy": _("The disk was busy %(percent)s %% of the time."),
    "cpu_full": _("The CPU was at %(percent)s %%."),
    "waves": _("All %(gpus)s GPUs fall and rise together."),
    "planned_communication": _("The plan reckoned with %(share)s of each step for it."),
    "slower": _("A step takes %(takes)s s, %(times)s times the planned %(planned)s s."),
    "gpu_lost": _("The GPU fell off the bus."),
    "xid": _("The driver reported XID %(code)s."),
    "machine_ended": _("Its provider showed it as off or gone."),
    "neighbour_score": _("The evidence of other tenants is at %(score)s of 100."),
    "process_grows": _("The server's process grew by %(bytes_per_hour)s an hour."),
    "host_grows": _("The machine's memory in use grew by %(bytes_per_hour)s an hour."),
    "gpu_grows": _("GPU memory in use grew by %(bytes_per_hour)s an hour."),
    "keeps_when_quiet": _("It stayed when the load fell."),
    "loads": _("%(loads)s loads for %(requests)s requests."),
    "timed_out": _("%(lines)s lines of the log say that something timed out."),
    "one_at_a_time": _("One request runs while %(waiting)s wait."),
    "queues": _("%(share)s of a request's time is waiting; requests waited in %(waiting)s of the readings."),
    "slow_token": _("A single token took %(seconds)s s, %(times)s times in a row, while nothing else was to do."),
    "tail": _("Half are done in %(p50)s s, the slowest twentieth takes %(p95)s s or more."),
    "computes": _("The slowest twentieth takes %(whole)s s or more."),
}
