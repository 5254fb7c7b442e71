"""A Dockerfile. The driver is the host's: an image holds none."""

from __future__ import annotations

from fleet.inventory.environments.exports.packages import explained, index_variables, install_lines
from fleet.inventory.environments.exports.recipe import Recipe, cuda_text
from planner.catalogue.software import Pair
from planner.catalogue.software_tables import software

# Ubuntu releases and the Python that they bring.
SYSTEMS = {"22.04": "3.10", "24.04": "3.12"}
OLDEST_CUDA_ON_24_04: Pair = (12, 6)


def dockerfile(recipe: Recipe) -> str:
    system = system_for(recipe)
    variables = index_variables(recipe)
    conda = bool(recipe.python) and SYSTEMS[system] != recipe.python
    lines = [
        "# An image with the same software. Build it with --build-arg for each ARG that has no default.",
        f"# {recipe.title}",
        *explained(recipe),
        f"ARG BASE_IMAGE={base_image(recipe, system)}",
        "FROM ${BASE_IMAGE}",
        *(f"ARG {name}" for name in variables),
        'SHELL ["/bin/bash", "-euo", "pipefail", "-c"]',
        *(conda_lines(recipe) if conda else venv_lines()),
        'ENV PATH="/opt/environment/bin:$PATH"',
        *(f"RUN {line}" for line in install_lines(recipe)),
    ]
    return "\n".join(lines) + "\n"


def system_for(recipe: Recipe) -> str:
    """The Ubuntu whose own Python it is, where NVIDIA has an image of that one; else the one that has them all."""
    new_enough = recipe.cuda is None or recipe.cuda >= OLDEST_CUDA_ON_24_04
    return "24.04" if recipe.python == SYSTEMS["24.04"] and new_enough else "22.04"


def base_image(recipe: Recipe, system: str) -> str:
    """NVIDIA's with the compiler; without a known CUDA plain Ubuntu."""
    updates = [each.update for each in software().toolkits if each.cuda == recipe.cuda]
    if not updates:
        return f"ubuntu:{system}"
    return f"nvidia/cuda:{cuda_text(recipe)}.{max(updates)}-devel-ubuntu{system}"


def venv_lines() -> list[str]:
    packages = "python3 python3-venv python3-dev build-essential git"
    return [
        f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*",
        "RUN python3 -m venv /opt/environment",
    ]


def conda_lines(recipe: Recipe) -> list[str]:
    """The base has another Python: Miniconda brings the right one."""
    packages = "ca-certificates curl build-essential git"
    return [
        "# The address of Miniconda's installer for this machine, or of a mirror of it.",
        "ARG MINICONDA_URL",
        f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*",
        'RUN curl -fsSL -o /tmp/miniconda.sh "${MINICONDA_URL:?set it to the address of the installer of Miniconda}" \\',
        "    && bash /tmp/miniconda.sh -b -p /opt/conda && rm /tmp/miniconda.sh",
        f"RUN /opt/conda/bin/conda create -y -p /opt/environment python={recipe.python} pip",
    ]
