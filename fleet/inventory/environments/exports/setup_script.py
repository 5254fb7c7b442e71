"""A script for a bare machine: driver from the package manager, CUDA toolkit without driver, cuDNN, Python, packages, proof."""

from __future__ import annotations

from fleet.inventory.environments.exports.packages import explained, install_lines, verify_lines
from fleet.inventory.environments.exports.recipe import Recipe
from planner.launchers.environment import driver_check

HEAD = """\
#!/usr/bin/env bash
# Sets up an environment on Ubuntu or Debian. Run it as root, or as somebody who may use sudo; it may be run again."""
FUNCTIONS = """\
set -euo pipefail
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }
installs() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }
in_container() { [ -e /.dockerenv ] || [ -e /run/.containerenv ] || grep -qsE '(docker|kubepods|lxc)' /proc/1/cgroup; }"""
REPOSITORY = """
# NVIDIA's packages, where the machine does not know them yet.
nvidia_packages() {
  if apt-cache show "$1" >/dev/null 2>&1; then return; fi
  : "${CUDA_KEYRING_URL:?set it to the address of the package cuda-keyring of NVIDIA for this system, or of a mirror of it}"
  installs ca-certificates curl
  keyring="$(mktemp --suffix=.deb)"
  curl -fsSL -o "$keyring" "$CUDA_KEYRING_URL"
  as_root dpkg -i "$keyring"
  rm -f "$keyring"
  as_root apt-get update
}"""


def setup_script(recipe: Recipe) -> str:
    parts = [
        HEAD,
        f"# {recipe.title}",
        *explained(recipe),
        FUNCTIONS,
        "as_root apt-get update",
        *([REPOSITORY] if recipe.driver_package or recipe.toolkit_package else []),
        *driver_part(recipe),
        *toolkit_part(recipe),
        *cudnn_part(recipe),
        *python_part(recipe),
        *install_lines(recipe),
        "",
        "# What is there now. It stops where that is not what was asked for.",
        *verify_lines(recipe),
    ]
    return "\n".join(parts) + "\n"


def driver_part(recipe: Recipe) -> list[str]:
    """Packages of the package manager follow updates of the kernel, which NVIDIA's own installer does not."""
    check = ["if command -v nvidia-smi >/dev/null 2>&1; then", *indented(driver_check(recipe.solution)), "fi"]
    if not recipe.driver_package:
        return ["", *check] if recipe.wheel else []
    return [
        "",
        "# The driver. A container has its host's. Older GPUs than Turing need the package cuda-drivers-… instead: set DRIVER_PACKAGE.",
        f'DRIVER_PACKAGE="${{DRIVER_PACKAGE:-{recipe.driver_package}}}"',
        "if ! command -v nvidia-smi >/dev/null 2>&1; then",
        "  if in_container; then",
        '    echo "No driver in this container: start it with the GPUs of its host." >&2',
        "    exit 1",
        "  fi",
        '  nvidia_packages "$DRIVER_PACKAGE"',
        '  installs "linux-headers-$(uname -r)" "$DRIVER_PACKAGE"',
        '  echo "The driver is installed. Restart the machine, then run this script again."',
        "  exit 0",
        "fi",
        *(driver_check(recipe.solution) if recipe.wheel else []),
    ]


def indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def toolkit_part(recipe: Recipe) -> list[str]:
    package = recipe.toolkit_package
    if not package:
        return []
    return [
        "",
        "# CUDA's compiler and libraries. The package named cuda would bring a driver of its own.",
        f"nvidia_packages {package}",
        f"installs {package}",
        f"export CUDA_HOME=/usr/local/cuda-{package.removeprefix('cuda-toolkit-').replace('-', '.')}",
        'export PATH="$CUDA_HOME/bin:$PATH"',
    ]


def cudnn_part(recipe: Recipe) -> list[str]:
    """Torch's wheels bring theirs; a second one in the library path would be loaded first."""
    package = recipe.cudnn_package
    if not package:
        return []
    if not recipe.torch:
        return ["", f"installs {package}"]
    return [
        "",
        "# torch brings its own cuDNN. The system's is only for programs that are compiled against it.",
        f'if [ "${{WITH_CUDNN:-no}}" = yes ]; then installs {package}; fi',
    ]


def python_part(recipe: Recipe) -> list[str]:
    if not recipe.python:
        return ["", "installs python3 python3-venv", *venv("python3")]
    name = f"python{recipe.python}"
    return [
        "",
        "# Python: the system's where it is the right one, else Miniconda's.",
        f"installs python3-venv {name} {name}-venv || true",
        f"if command -v {name} >/dev/null 2>&1 && {name} -c 'import ensurepip' >/dev/null 2>&1; then",
        *indented(venv(name)),
        "else",
        *indented(conda(recipe.python)),
        "fi",
    ]


def venv(python: str) -> list[str]:
    return [f'{python} -m venv "${{VENV:=$PWD/.venv}}"', 'export PATH="$VENV/bin:$PATH"']


def conda(python: str) -> list[str]:
    return [
        'CONDA_HOME="${CONDA_HOME:-$HOME/miniconda3}"',
        'if [ ! -x "$CONDA_HOME/bin/conda" ]; then',
        '  : "${MINICONDA_URL:?set it to the address of the installer of Miniconda for this machine, or of a mirror of it}"',
        '  installer="$(mktemp --suffix=.sh)"',
        '  curl -fsSL -o "$installer" "$MINICONDA_URL"',
        '  bash "$installer" -b -p "$CONDA_HOME"',
        '  rm -f "$installer"',
        "fi",
        f'"$CONDA_HOME/bin/conda" create -y -p "${{VENV:=$PWD/.venv}}" python={python} pip',
        'export PATH="$VENV/bin:$PATH"',
    ]
