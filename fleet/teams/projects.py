"""Projects: the cost centres that machines, jobs and budgets are attributed to."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from fleet.teams.audit import Actor, record
from fleet.teams.errors import Taken
from fleet.teams.models import Project, Team
from fleet.teams.teams import numbered


@transaction.atomic
def create_project(*, actor: Actor, team: Team, name: str) -> Project:
    """Raises Taken where the team has a project of this name."""
    lock_names(team)
    refuse_taken_name(team=team, name=name)
    project = Project.objects.create(team=team, name=name, slug=free_project_slug(team, name))
    record(actor=actor, team=team, action="project.create", target=project, new={"name": name, "slug": project.slug})
    return project


@transaction.atomic
def rename_project(*, actor: Actor, project: Project, name: str) -> None:
    """The address stays, and with it what bills and exports call it. Raises Taken."""
    if name == project.name:
        return
    lock_names(project.team)
    refuse_taken_name(team=project.team, name=name, but=project)
    old = project.name
    Project.objects.filter(pk=project.pk).update(name=name)
    project.name = name
    record(
        actor=actor,
        team=project.team,
        action="project.update",
        target=project,
        old={"name": old},
        new={"name": name},
    )


@transaction.atomic
def archive_project(*, actor: Actor, project: Project) -> None:
    """No new machine is attributed to it; what was, stays."""
    if Project.objects.filter(pk=project.pk, archived_at=None).update(archived_at=timezone.now()):
        record(actor=actor, team=project.team, action="project.archive", target=project)


@transaction.atomic
def restore_project(*, actor: Actor, project: Project) -> None:
    if Project.objects.filter(pk=project.pk, archived_at__isnull=False).update(archived_at=None):
        record(actor=actor, team=project.team, action="project.restore", target=project)


def lock_names(team: Team) -> None:
    """Until the transaction ends nobody else names a project of this team, so that two cannot take one name at once."""
    Team.objects.select_for_update().get(pk=team.pk)


def refuse_taken_name(*, team: Team, name: str, but: Project | None = None) -> None:
    same = Project.objects.filter(team=team, name__iexact=name).first()
    if same and same != but:
        raise Taken(_("A project of this name exists. Choose another name, or restore it if it is archived."))


def free_project_slug(team: Team, name: str) -> str:
    base = slugify(name)[:50] or "project"
    taken = set(Project.objects.filter(team=team, slug__startswith=base).values_list("slug", flat=True))
    return next(slug for slug in numbered(base) if slug not in taken)
