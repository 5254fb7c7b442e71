"""The script that installs what a launcher needs: the right build of torch for driver and GPU, and everything beside it, pinned."""

from __future__ import annotations

from functools import lru_cache

from packaging.version import Version

from planner.catalogue.software import driver_text, pair_text
from planner.catalogue.software_tables import software
from planner.compatibility.machine import SMALL_SHARED_MEMORY_BYTES
from planner.compatibility.solver import Solution, solve_stack
from planner.compatibility.stacks import Machine, Needs
from planner.launchers.base import File, Launcher, Order, Place, TrainingOrder, quoted
from planner.launchers.packages import requirement

NAME = "install.sh"
# Nobody has looked at the machine: the oldest driver of each branch that is common and knows its CUDA whole.
LIKELY_DRIVERS = ("570.124.06", "580.95.05", "595.58.03")
# Frameworks whose wheels are not on the default index, and the variable that names theirs.
OWN_INDEXES = {
    "tensorrt-llm": ("NVIDIA_INDEX_URL", "the package index of NVIDIA"),
    "paddlepaddle-gpu": ("PADDLE_INDEX_URL", "the package index of PaddlePaddle"),
}

# They name the versions of these packages that they work with.
SELF_PINNING = frozenset({"llmcompressor", "megatron-bridge", "colossalai"})
PINNED_BY_THEM = frozenset({"transformers", "accelerate", "datasets"})


def packages_of(launcher: Launcher, solution: Solution) -> tuple[str, ...]:
    """Requirements beside torch and the frameworks, as pip reads them. Where one of them pins the others, they stand without versions."""
    frameworks = solution.stack.frameworks
    if not SELF_PINNING.intersection([*launcher.packages, *frameworks]):
        return tuple(requirement(name) for name in launcher.packages)
    named = [name if name in PINNED_BY_THEM else requirement(name) for name in launcher.packages]
    # Named again, so that pip holds the others to what it asks for.
    return (*named, *(f"{name}=={version}" for name, version in frameworks.items() if name in SELF_PINNING))


def needs_bitsandbytes(order: TrainingOrder) -> bool:
    return order.run.method == "qlora" or order.run.optimizer.startswith("adamw-8bit")


def likely_driver(place: Place) -> str | None:
    """The driver if it is known, else the oldest likely one that is not older than the GPU."""
    first = int(place.gpu.driver_branch_min or 0)
    newer = [driver for driver in LIKELY_DRIVERS if int(driver.split(".")[0]) >= first]
    return place.driver or (newer[0] if newer else None)


def stack_for(launcher: Launcher, order: Order) -> Solution | None:
    driver = likely_driver(order.place)
    if driver is None:
        return None
    bits = ("bitsandbytes",) if isinstance(order, TrainingOrder) and needs_bitsandbytes(order) else ()
    machine = Machine(order.place.gpu, driver, gpus=order.place.gpus_per_node)
    return _solved(machine, (*launcher.frameworks(order), *bits), Needs(dtype=order.run.compute_dtype))


# A page asks for the same few stacks again and again, eleven at a time.
@lru_cache(maxsize=512)
def _solved(machine: Machine, frameworks: tuple[str, ...], needs: Needs) -> Solution | None:
    return solve_stack(machine, frameworks, needs)


def install_script(launcher: Launcher, order: Order) -> File | None:
    """None where no stack works, or where the GPU is not NVIDIA's."""
    solution = stack_for(launcher, order)
    return None if solution is None else File(NAME, script_text(launcher, order, solution))


def script_text(launcher: Launcher, order: Order, solution: Solution) -> str:
    lines = [
        "#!/usr/bin/env bash",
        f"# {launcher.key} on {order.place.gpu.name}: {described(solution)}.",
        "set -euo pipefail",
        *driver_check(solution),
        *memory_check(order.place),
        'python3 -m venv "${VENV:=.venv}"',
        '. "$VENV/bin/activate"',
        "python -m pip install --upgrade pip setuptools wheel",
        *torch_lines(solution),
        *framework_lines(solution),
        *package_lines(packages_of(launcher, solution)),
        *proof_lines(solution),
        *exports(order.place, solution),
    ]
    return "\n".join(lines) + "\n"


def described(solution: Solution) -> str:
    parts = [f"{name} {version}" for name, version in solution.stack.frameworks.items()]
    if solution.stack.torch:
        parts.insert(0, f"torch {solution.stack.torch} ({solution.stack.cuda_tag})")
    return ", ".join(parts)


def oldest_driver(solution: Solution) -> Version | None:
    """Below it nothing of the stack runs."""
    if solution.wheel:
        return solution.wheel.floor
    tables = software()
    floors = [
        release.driver_min
        for name, version in solution.stack.frameworks.items()
        if (release := tables.release(name, version)) and release.driver_min
    ]
    return max(floors, default=None)


def driver_check(solution: Solution) -> list[str]:
    oldest = oldest_driver(solution)
    if oldest is None:
        return []
    return [
        f"oldest={driver_text(oldest)}",
        'driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"',
        'if [ "$(printf \'%s\\n%s\\n\' "$oldest" "$driver" | sort -V | head -n 1)" != "$oldest" ]; then',
        '  echo "Driver $driver is older than $oldest: this stack does not run on it." >&2',
        "  exit 1",
        "fi",
    ]


def memory_check(place: Place) -> list[str]:
    """Processes on one machine talk through /dev/shm; a container gets 64 MiB of it if nobody asks for more."""
    if place.gpus_per_node == 1:
        return []
    return [
        f"if [ \"$(df -k /dev/shm | awk 'NR == 2 {{ print $2 }}')\" -le {SMALL_SHARED_MEMORY_BYTES // 1024} ]; then",
        '  echo "/dev/shm is too small for several GPUs: start the container with --shm-size=16g or --ipc=host." >&2',
        "  exit 1",
        "fi",
    ]


def torch_lines(solution: Solution) -> list[str]:
    """A pinned version of the default index is one known build; every other build has an index of its own, whose address is asked for."""
    if solution.wheel is None:
        return []
    wanted = quoted(f"torch=={solution.stack.torch}")
    if solution.wheel.is_default:
        return [f"python -m pip install {wanted}"]
    ask = f"set it to the address of the wheel index of PyTorch for {solution.wheel.tag}, or of a mirror of it"
    return [f'python -m pip install {wanted} --index-url "${{TORCH_INDEX_URL:?{ask}}}"']


def framework_lines(solution: Solution) -> list[str]:
    """Frameworks that build against torch see the one that is installed; those with an index of their own ask for it."""
    lines: list[str] = []
    for name, version in solution.stack.frameworks.items():
        wanted = quoted(f"{name}=={version}")
        if name in OWN_INDEXES:
            variable, index = OWN_INDEXES[name]
            lines.append(
                f'python -m pip install {wanted} --extra-index-url "${{{variable}:?set it to the address of {index}}}"'
            )
        elif name == "vllm" and solution.wheel and not solution.wheel.is_default:
            ask = "set it to the address of the wheel index of vLLM for this version and CUDA 12, or of a mirror of it"
            lines.append(
                f'python -m pip install {wanted} --extra-index-url "${{VLLM_INDEX_URL:?{ask}}}" --extra-index-url "$TORCH_INDEX_URL"'
            )
        elif name in {"deepspeed", "flash-attn", "transformer-engine", "megatron-core"}:
            extra = quoted(f"{name}[pytorch]=={version}") if name == "transformer-engine" else wanted
            lines.append(f"python -m pip install {extra} --no-build-isolation")
        else:
            lines.append(f"python -m pip install {wanted}")
    return lines


def package_lines(packages: tuple[str, ...]) -> list[str]:
    return [f"python -m pip install {' '.join(quoted(each) for each in packages)}"] if packages else []


def proof_lines(solution: Solution) -> list[str]:
    """Fails here and not an hour later: another package may have replaced torch by another build."""
    if solution.wheel is None:
        return []
    cuda = pair_text(solution.wheel.cuda)
    check = f"import torch; assert torch.version.cuda == {cuda!r}, torch.version.cuda; torch.zeros(1, device='cuda'); print(torch.__version__)"
    return [f'python -c "{check}"']


def exports(place: Place, solution: Solution) -> list[str]:
    """Written into the environment's activate script, so that every command of it has them."""
    chosen = place.environment()
    if solution.stack.torch:
        name = "PYTORCH_ALLOC_CONF" if Version(solution.stack.torch) >= Version("2.9") else "PYTORCH_CUDA_ALLOC_CONF"
        chosen |= {name: "expandable_segments:True"}
    return [
        f'echo {quoted(f"export {name}={quoted(value)}")} >> "$VENV/bin/activate"' for name, value in chosen.items()
    ]
