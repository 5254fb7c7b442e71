"""What else the process loads or builds with: cuDNN, NCCL, Python, number types, nvcc."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.software import Pair, Release, pair_text
from planner.compatibility.stacks import Case, Finding, Level, parse_minor, parse_version
from planner.reasons import Reason, reason

FLASH_CAPABILITY: Pair = (8, 0)
INT8_CAPABILITY: Pair = (7, 5)
# Weights in FP8 are unpacked to 16 bits while multiplying on parts from here on (vLLM's Marlin kernels).
FP8_WEIGHTS_CAPABILITY: Pair = (8, 0)
# Compile operators on the machine, with the nvcc they find there.
BUILDERS = ("deepspeed", "flash-attn")


def check_cudnn(case: Case) -> Iterator[Finding]:
    wheel = case.wheel
    if wheel is None:
        return
    rows = [each for each in case.tables.cudnn if each.cuda_major == wheel.cuda[0] and each.version <= wheel.cudnn]
    bundled = max(rows, key=lambda each: each.version, default=None)
    if bundled and case.capability < bundled.lowest:
        values = {"cudnn": str(wheel.cudnn), "lowest": pair_text(bundled.lowest), "gpu": case.machine.gpu.name}
        yield Finding("cudnn", "refused", Reason("compatibility.cudnn_kernels", values), symptom="no-kernel-image")
    if case.stack.system_cudnn:
        yield from _check_system_cudnn(case.stack.system_cudnn, str(wheel.cudnn))
    for release in case.releases:
        if release.cudnn_major and release.cudnn_major != wheel.cudnn.major:
            values = {
                "framework": release.framework,
                "cudnn": str(release.cudnn_major),
                "torch": str(wheel.cudnn.major),
            }
            fix = reason(
                "compatibility.fix.separate_environment", framework=release.framework, version=str(release.version)
            )
            symptom = "cudnn8-missing" if release.cudnn_major == 8 else "cudnn-version-clash"
            yield Finding("cudnn", "refused", Reason("compatibility.cudnn_major", values), symptom=symptom, fix=fix)


def _check_system_cudnn(found: str, compiled: str) -> Iterator[Finding]:
    """PyTorch's own rule: the same major, and at least the minor that it was compiled against."""
    runtime, built = parse_version("cudnn", found), parse_version("cudnn", compiled)
    if runtime.major != built.major or runtime.minor < built.minor:
        yield Finding(
            "cudnn",
            "refused",
            reason("compatibility.system_cudnn", found=found, compiled=compiled),
            symptom="cudnn-version-clash",
            fix=reason("compatibility.fix.library_path", library="cuDNN"),
        )


def check_nccl(case: Case) -> Iterator[Finding]:
    found = case.stack.system_nccl
    if case.wheel and case.wheel.nccl and found and parse_version("nccl", found) < case.wheel.nccl:
        yield Finding(
            "cudnn",
            "refused",
            reason("compatibility.system_nccl", found=found, compiled=str(case.wheel.nccl)),
            symptom="nccl-symbol",
            fix=reason("compatibility.fix.library_path", library="NCCL"),
        )


def check_python(case: Case) -> Iterator[Finding]:
    if case.stack.python is None:
        return
    python = parse_minor("python", case.stack.python)
    if case.wheel:
        torch = {"framework": "torch", "version": case.stack.torch or ""}
        yield from _python_range(python, case.wheel.python_min, case.wheel.python_max, torch)
    for release in case.releases:
        values = {"framework": release.framework, "version": str(release.version)}
        yield from _python_range(python, release.python_min, release.python_max, values)


def _python_range(python: Pair, lowest: Pair | None, highest: Pair | None, values: dict[str, str]) -> Iterator[Finding]:
    if not (lowest or python) <= python <= (highest or python):
        bounds = {"lowest": pair_text(lowest or python), "highest": pair_text(highest or python)}
        fix = Reason("compatibility.fix.python", bounds)
        found = Reason("compatibility.python", {**values, **bounds, "python": pair_text(python)})
        yield Finding("python", "refused", found, fix=fix)


def check_types(case: Case) -> Iterator[Finding]:
    part, needs = case.architecture, case.needs
    gpu = {"gpu": case.machine.gpu.name}
    if needs.dtype == "bf16" and not part.bf16:
        fix = reason("compatibility.fix.dtype", dtype="fp16")
        yield Finding("dtype", "refused", Reason("compatibility.no_bf16", gpu), symptom="bf16-unsupported", fix=fix)
    if needs.dtype == "fp8" and not part.fp8:
        dtype = "bf16" if part.bf16 else "fp16"
        yield Finding(
            "dtype", "refused", Reason("compatibility.no_fp8", gpu), fix=reason("compatibility.fix.dtype", dtype=dtype)
        )
    if needs.flash_attention and case.capability < FLASH_CAPABILITY:
        fix = reason("compatibility.fix.attention")
        yield Finding("dtype", "refused", Reason("compatibility.no_flash", gpu), symptom="flash-attn-arch", fix=fix)
    yield from _check_weights(case)


def _check_weights(case: Case) -> Iterator[Finding]:
    gpu = {"gpu": case.machine.gpu.name}
    if case.needs.weight_format == "int8" and case.capability < INT8_CAPABILITY:
        yield Finding("dtype", "refused", Reason("compatibility.no_int8", gpu))
    if case.needs.weight_format == "fp8" and not case.architecture.fp8:
        level: Level = "minor" if case.capability >= FP8_WEIGHTS_CAPABILITY else "refused"
        yield Finding(
            "dtype",
            level,
            Reason("compatibility.fp8_weights_only" if level == "minor" else "compatibility.no_fp8", gpu),
        )


def check_toolkit(case: Case) -> Iterator[Finding]:
    """The image's nvcc must know the part, and be of the CUDA that torch was built with where a framework compiles operators."""
    if case.stack.nvcc is None or case.wheel is None:
        return
    nvcc = parse_minor("nvcc", case.stack.nvcc)
    part = case.architecture
    if not part.first_cuda <= nvcc <= (part.last_cuda or nvcc):
        values = {"nvcc": pair_text(nvcc), "gpu": case.machine.gpu.name, "first": pair_text(part.first_cuda)}
        yield Finding("toolkit", "refused", Reason("compatibility.nvcc_part", values), symptom="nvcc-unsupported-arch")
    for release in case.releases:
        if release.framework in BUILDERS and nvcc != case.wheel.cuda and not _has_wheel(release, case.wheel.torch):
            yield _nvcc_differs(release, nvcc, case.wheel.cuda)


def _has_wheel(release: Release, torch: Pair) -> bool:
    return torch in release.prebuilt_torch


def _nvcc_differs(release: Release, nvcc: Pair, torch_cuda: Pair) -> Finding:
    """DeepSpeed allows another minor of CUDA 11 and 12, by a list that 13 is not in."""
    values = {"framework": release.framework, "nvcc": pair_text(nvcc), "cuda": pair_text(torch_cuda)}
    same_major = nvcc[0] == torch_cuda[0]
    level: Level = "minor" if same_major and nvcc[0] < 13 else "refused"
    fix = "compatibility.fix.skip_cuda_check" if same_major else "compatibility.fix.devel_image"
    symptom = "deepspeed-cuda-mismatch"
    return Finding(
        "toolkit", level, Reason("compatibility.nvcc_differs", values), symptom=symptom, fix=Reason(fix, values)
    )
