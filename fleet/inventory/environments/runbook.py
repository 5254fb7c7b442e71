"""A runbook: what lies on an environment, how work is started on it, what goes wrong, and files that set it up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleet.inventory.environments.exports.dockerfile import dockerfile
from fleet.inventory.environments.exports.packages import environment_yml, requirements_txt, verify_lines
from fleet.inventory.environments.exports.recipe import Recipe, recipe_of
from fleet.inventory.environments.exports.setup_script import setup_script
from fleet.inventory.environments.markdown import runbook_markdown
from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.pitfalls import Met, pitfalls_of
from fleet.inventory.environments.sources import versions_of
from fleet.inventory.environments.versions import Versions
from fleet.teams.fields import one_line


@dataclass(frozen=True, slots=True)
class Runbook:
    environment: Environment
    versions: Versions
    recipe: Recipe
    pitfalls: tuple[Met, ...]

    @property
    def verify(self) -> str:
        return "\n".join(verify_lines(self.recipe))


def runbook_of(environment: Environment) -> Runbook:
    versions = versions_of(environment)
    image = environment.reference or (environment.image.external_id if environment.image else "")
    recipe = recipe_of(versions, title=one_line(environment.name) or "-", image=one_line(image))
    return Runbook(environment, versions, recipe, pitfalls_of(versions))


@dataclass(frozen=True, slots=True)
class Export:
    file_name: str
    write: Callable[[Runbook], str]


def as_markdown(runbook: Runbook) -> str:
    return runbook_markdown(
        environment=runbook.environment, versions=runbook.versions, pitfalls=runbook.pitfalls, verify=runbook.verify
    )


EXPORTS: Mapping[str, Export] = {
    "markdown": Export("runbook.md", as_markdown),
    "requirements": Export("requirements.txt", lambda runbook: requirements_txt(runbook.recipe)),
    "conda": Export(
        "environment.yml", lambda runbook: environment_yml(runbook.recipe, name=one_line(runbook.environment.name))
    ),
    "dockerfile": Export("Dockerfile", lambda runbook: dockerfile(runbook.recipe)),
    "setup": Export("setup.sh", lambda runbook: setup_script(runbook.recipe)),
}
