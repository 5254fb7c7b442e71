"""The sandbox as a team of the dashboard: its projects, its account at the sandbox provider, and who its machines belong to."""

from __future__ import annotations

from datetime import timedelta

from celery import chain
from django.db import transaction
from django.utils import timezone

from fleet.costs.attribution.tasks import attribute
from fleet.costs.book.tasks import build
from fleet.costs.budgets.tasks import judge_budgets
from fleet.costs.forecast.tasks import keep_forecasts
from fleet.costs.spend.tasks import sum_days
from fleet.inventory.accounts import create_account, update_account
from fleet.inventory.machines import update_machine
from fleet.inventory.models import Instance, ProviderAccount
from fleet.sandbox.cast import PROJECTS
from fleet.sandbox.history import write_past
from fleet.sandbox.policies import write_policies
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team
from fleet.telemetry.enrolment import create_enrolment_token

SLUG = "sandbox"
NAME = "Sandbox"
KIND = "sandbox"
POLL_SECONDS = 30
MAX_MACHINES = 500
SANDBOX = Actor.system("sandbox")


class SlugTakenError(Exception):
    """A team of people has the sandbox's address."""


@transaction.atomic
def open_sandbox(*, actor: Actor = SANDBOX, key: str, born_at: float | None = None) -> ProviderAccount:
    """The sandbox's team, account and idle policies, made at the first call and left as they are afterwards. `key`: one that may read.

    The team's first account gets the provider's past before `born_at` (seconds since the epoch) in the same transaction: it has all of it,
    or is not there. Raises SlugTakenError.
    """
    team = _team(actor)
    _projects(actor, team)
    is_first = not ProviderAccount.objects.filter(team=team).exists()
    account = _account(actor, team, key)
    if is_first:
        write_policies(actor=actor, team=team, now=timezone.now())
    if is_first and born_at is not None:
        write_past(actor=actor, account=account, born_at=born_at, now=timezone.now())
        # Whatever keeps it from being asked for at once, beat's own rounds make up for.
        transaction.on_commit(count_money, robust=True)
    return account


def count_money() -> None:
    """Asks for it at once, and in this order: within five minutes is late for whoever looks for the first time."""
    steps = (attribute.si(), build.si(), sum_days.si(), keep_forecasts.si(), judge_budgets.si())
    chain(*steps).apply_async(retry=False)


def _team(actor: Actor) -> Team:
    team, made = Team.objects.get_or_create(slug=SLUG, defaults={"name": NAME, "is_sandbox": True})
    if not team.is_sandbox:
        raise SlugTakenError(f"The team {team.name} has the address /t/{SLUG}/. Rename it, or start with SANDBOX=0.")
    if made:
        record(actor=actor, team=team, action="team.create", target=team, new={"name": NAME, "slug": SLUG})
    return team


def _projects(actor: Actor, team: Team) -> None:
    for slug, name in PROJECTS.items():
        project, made = Project.objects.get_or_create(team=team, slug=slug, defaults={"name": name})
        if made:
            new = {"name": name, "slug": slug}
            record(actor=actor, team=team, action="project.create", target=project, new=new)


def _account(actor: Actor, team: Team, key: str) -> ProviderAccount:
    found = ProviderAccount.objects.filter(team=team, kind=KIND, disconnected_at=None).order_by("pk").first()
    values = {"key": key}
    if found is None:
        return create_account(
            actor=actor, team=team, kind=KIND, name=NAME, values=values, poll_interval_seconds=POLL_SECONDS
        )
    # Also asks for a listing at once: the sandbox was away, and its machines went on.
    return update_account(
        actor=actor,
        account=found,
        name=found.name,
        values=values,
        monitor_only=found.monitor_only,
        poll_interval_seconds=found.poll_interval_seconds,
    )


def listed_machines(account: ProviderAccount) -> set[str]:
    """External ids of the machines that a listing has shown."""
    return set(Instance.objects.filter(account=account, gone_at=None).values_list("external_id", flat=True))


def adopt_machines(*, actor: Actor = SANDBOX, account: ProviderAccount) -> int:
    """Register machines that a listing showed for the first time, under the project and owner that their provider's labels name."""
    projects = {project.slug: project for project in Project.objects.filter(team=account.team)}
    fresh = Instance.objects.filter(account=account, managed=False, gone_at=None)
    for instance in fresh:
        owner = instance.provider_labels.get("owner")
        update_machine(
            actor=actor,
            instance=instance,
            managed=True,
            owner=None,
            project=projects.get(instance.provider_labels.get("project", "")),
            labels={"owner": owner} if owner else {},
        )
    return len(fresh)


def new_enrolment_token(*, actor: Actor = SANDBOX, team: Team) -> str:
    """For every machine of the sandbox, for a day."""
    _, token = create_enrolment_token(actor=actor, team=team, max_uses=MAX_MACHINES, lifetime=timedelta(days=1))
    return token.secret
