"""What must be so before a job is begun. Each check raises JobRefused with the field that has to be changed."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.providers.base import InstanceState
from fleet.teams.models import Team
from jobs.book.order import JobRefused, Order
from jobs.book.serving import refuse_serving
from jobs.book.values import environment_problem, is_relative

MOST_MACHINES = 64
MOST_RETRIES = 10


def refuse_order(order: Order, now: datetime) -> None:
    """Raises JobRefused for what could not be run."""
    _refuse_command(order)
    _refuse_values(order)
    _refuse_repository(order)
    _refuse_paths(order)
    refuse_serving(order)
    _refuse_limits(order, now)


def _refuse_command(order: Order) -> None:
    if not order.command.strip():
        raise JobRefused("command", _("Say what to run."))
    if "\0" in order.command:
        raise JobRefused("command", _("A command has no NUL characters."))


def _refuse_values(order: Order) -> None:
    for name in ("environment", "secrets"):
        if (problem := environment_problem(getattr(order, name))) is not None:
            raise JobRefused(name, problem)
    if both := set(order.environment) & set(order.secrets):
        text = _("%(name)s is among the open values too: keep it in one place.")
        raise JobRefused("secrets", text % {"name": min(both)})


def _refuse_paths(order: Order) -> None:
    for file in order.files:
        path = str(file.get("path", ""))
        if not is_relative(path):
            raise JobRefused("files", _("%(path)s leads out of the job's directory.") % {"path": path[:100]})
    for name in ("data_path", "checkpoint_path"):
        path = getattr(order, name)
        if path and (not posixpath.isabs(path) or "\n" in path or "\0" in path):
            raise JobRefused(name, _("Write the whole path, beginning with /."))


def _refuse_limits(order: Order, now: datetime) -> None:
    if order.retries > MOST_RETRIES:
        raise JobRefused("retries", _("At most %(n)d retries.") % {"n": MOST_RETRIES})
    if order.deadline_at is not None and order.deadline_at <= now:
        raise JobRefused("deadline_at", _("The deadline is over. Choose a later time."))


def _refuse_repository(order: Order) -> None:
    if not order.repository:
        return
    parts = urlsplit(order.repository)
    if (
        parts.scheme != "https"
        or not parts.hostname
        or parts.username
        or parts.password
        or any(mark.isspace() for mark in order.repository)
    ):
        raise JobRefused(
            "repository", _("Write an https:// address without a password; a token belongs into the secrets.")
        )
    if order.revision.startswith("-") or any(mark.isspace() for mark in order.revision):
        raise JobRefused("revision", _("Write the name of a branch or tag, or a commit."))


def refuse_upload(team: Team, order: Order) -> None:
    """Raises JobRefused for files that are not there (any more), or another team's."""
    upload = order.upload
    if upload is None:
        return
    if upload.team_id != team.pk:
        raise JobRefused("upload", _("There is no such upload."))
    if upload.dropped_at is not None:
        raise JobRefused("upload", _("The files of “%(name)s” were dropped: send them again.") % {"name": upload.name})


def refuse_machines(team: Team, machines: Sequence[Instance]) -> list[Instance]:
    """Locked, in the order given: the first is rank 0. Raises JobRefused."""
    if not machines:
        raise JobRefused("machines", _("Choose at least one machine."))
    if len(machines) > MOST_MACHINES:
        raise JobRefused("machines", _("At most %(n)d machines.") % {"n": MOST_MACHINES})
    rows = {
        row.pk: row
        for row in Instance.objects.select_for_update(of=("self",)).filter(
            team=team, pk__in=[machine.pk for machine in machines]
        )
    }
    found = [rows.get(machine.pk) for machine in machines]
    if len(rows) != len(machines):
        raise JobRefused("machines", _("A machine is named twice, or is none of this team's."))
    for machine in found:
        assert machine is not None
        _refuse_machine(machine)
    return [machine for machine in found if machine is not None]


def _refuse_machine(machine: Instance) -> None:
    said = {"name": machine.name}
    if machine.gone_at is not None:
        raise JobRefused("machines", _("%(name)s is no more.") % said)
    if not machine.managed:
        raise JobRefused(
            "machines",
            _("Nobody registered %(name)s, and what nobody registered is never touched. Register it first.") % said,
        )
    if machine.state != InstanceState.RUNNING:
        raise JobRefused("machines", _("%(name)s does not run. Start it first.") % said)
    if not machine.ssh and not machine.ssh_typed:
        raise JobRefused(
            "machines", _("Nobody knows how to reach %(name)s over SSH. Type its address on its page.") % said
        )
