"""Running a job again as it was, on the same machines or on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from fleet.inventory.credentials import CredentialError
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor
from jobs.book.manage import create_job, order_of
from jobs.book.models import Job
from jobs.book.order import JobRefused


def rerun_job(
    *,
    actor: Actor,
    job: Job,
    machines: Sequence[Instance] | None,
    secrets: Mapping[str, str] | None,
    changes: Mapping[str, Any],
    now: datetime,
    idempotency_key: str = "",
) -> Job:
    """A new job. `machines`, `secrets` None: those of before. `changes`: other columns of Order. Raises JobRefused.

    Secrets go by themselves only to machines that had them: who may launch may not read them by that.
    """
    before = machines_of(job)
    if machines is None:
        machines = before
    if secrets is None and job.secret_names and not {row.pk for row in machines} <= {row.pk for row in before}:
        text = _("On other machines than before its secrets have to be given again: %(names)s.")
        raise JobRefused("secrets", text % {"names": ", ".join(job.secret_names)})
    try:
        order = order_of(job)
    except CredentialError as error:
        raise JobRefused("secrets", str(error)) from None
    if secrets is not None:
        order = replace(order, secrets=secrets)
    return create_job(
        actor=actor,
        team=job.team,
        order=replace(order, **changes),
        machines=machines,
        now=now,
        idempotency_key=idempotency_key,
        rerun_of=job,
    )


def machines_of(job: Job) -> list[Instance]:
    """Of its newest attempt, in the order of ranks."""
    attempt = job.attempts.order_by("-number").first()
    nodes = attempt.nodes.select_related("instance").order_by("rank") if attempt else []
    return [node.instance for node in nodes]
