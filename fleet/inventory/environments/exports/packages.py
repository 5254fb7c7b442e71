"""The Python side of an environment: requirements.txt, environment.yml, and the lines of shell that install the same."""

from __future__ import annotations

import json
from dataclasses import replace

from fleet.inventory.environments.exports.recipe import Recipe
from planner.compatibility.solver import Solution
from planner.launchers.base import quoted
from planner.launchers.environment import OWN_INDEXES, framework_lines, proof_lines, torch_lines

TORCH_INDEX, VLLM_INDEX = "TORCH_INDEX_URL", "VLLM_INDEX_URL"
VLLM_TOLD = "the address of the wheel index of vLLM for this version and CUDA, or of a mirror of it"
TORCH_TOLD = "the address of the wheel index of PyTorch for {tag}, or of a mirror of it"


def index_variables(recipe: Recipe) -> dict[str, str]:
    """Variables that must hold the address of an index, and what it is the address of."""
    wanted = {TORCH_INDEX: TORCH_TOLD.format(tag=recipe.tag)} if recipe.needs_index else {}
    if recipe.wheel and recipe.needs_index and "vllm" in dict(recipe.packages):
        wanted[VLLM_INDEX] = VLLM_TOLD
    return wanted | dict(OWN_INDEXES[name] for name, _version in recipe.packages if name in OWN_INDEXES)


def requirements(recipe: Recipe) -> list[str]:
    lines = [recipe.torch_requirement] if recipe.torch else []
    return [*lines, *(f"{name}=={version}" for name, version in recipe.packages)]


def requirements_txt(recipe: Recipe) -> str:
    lines = [f"# {recipe.title}", *explained(recipe), *index_options(recipe), *requirements(recipe)]
    return "\n".join(lines) + "\n"


def explained(recipe: Recipe) -> list[str]:
    """Comments that every kind of file has: what to set before, and what is missing."""
    lines = [f"# Set {name} to {what}." for name, what in index_variables(recipe).items()]
    if recipe.left_out:
        lines.append(f"# Left out, because their versions cannot be installed by name: {', '.join(recipe.left_out)}.")
    return lines


def index_options(recipe: Recipe) -> list[str]:
    """Pip fills in variables in requirements files."""
    return [f"--extra-index-url ${{{name}}}" for name in index_variables(recipe)]


def environment_yml(recipe: Recipe, *, name: str) -> str:
    """`name` is quoted as YAML takes it: JSON is YAML."""
    packages = [*index_options(recipe), *requirements(recipe)]
    lines = [
        f"# {recipe.title}",
        *explained(recipe),
        f"name: {json.dumps(name)}",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={recipe.python}" if recipe.python else "  - python",
        "  - pip",
    ]
    if packages:
        lines += ["  - pip:", *(f"      - {json.dumps(each)}" for each in packages)]
    return "\n".join(lines) + "\n"


def install_lines(recipe: Recipe) -> list[str]:
    """Torch first, with what comes from its index: others that are built against it look for it."""
    return [
        "python -m pip install --upgrade pip setuptools wheel",
        *_torch(recipe),
        *(_from_torch_index(f"{name}=={version}", recipe) for name, version in recipe.packages if "+" in version),
        *framework_lines(_without_builds(recipe)),
    ]


def _torch(recipe: Recipe) -> list[str]:
    if recipe.wheel or not recipe.torch:
        return torch_lines(recipe.solution)
    return [_from_torch_index(recipe.torch_requirement, recipe)]


def _from_torch_index(requirement: str, recipe: Recipe) -> str:
    line = f"python -m pip install {quoted(requirement)}"
    if not recipe.needs_index:
        return line
    return f'{line} --index-url "${{{TORCH_INDEX}:?set it to {TORCH_TOLD.format(tag=recipe.tag)}}}"'


def _without_builds(recipe: Recipe) -> Solution:
    """What the planner's installer knows how to get."""
    solution = recipe.solution
    others = {name: version for name, version in recipe.packages if "+" not in version}
    return replace(solution, stack=replace(solution.stack, frameworks=others))


def verify_lines(recipe: Recipe) -> list[str]:
    """Shows what is there, and fails where it is not what was asked for."""
    lines = ["nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"]
    if recipe.torch:
        lines += proof_lines(recipe.solution) or [
            "python -c \"import torch; torch.zeros(1, device='cuda'); print(torch.__version__)\""
        ]
    for name, version in recipe.packages:
        wanted = json.dumps(version.partition("+")[0])
        code = f"from importlib.metadata import version; found = version({json.dumps(name)}); assert found.startswith({wanted}), found"
        lines.append(f"python -c {quoted(code)}")
    return [*lines, "python -m pip check"]
