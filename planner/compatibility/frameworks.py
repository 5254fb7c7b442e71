"""Frameworks against the torch beside them, against the GPU, and, without torch, against the driver."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.software import Pair, Release, TorchWheel, driver_text, pair_text
from planner.compatibility.stacks import Case, Finding, Level, Step
from planner.reasons import Reason, reason

# What people meet where a framework has no kernels for the part.
_CAPABILITY_SYMPTOMS = {"vllm": "vllm-cc-too-low", "flash-attn": "flash-attn-arch", "flash-attn-3": "flash-attn-arch"}
# Published pairs of wheels are at most this many CUDA minors apart (vLLM's 12.9 on torch's 12.8).
_PUBLISHED_MINORS_APART = 1
STEP: Step = "frameworks"


def check_frameworks(case: Case) -> Iterator[Finding]:
    known = {release.framework for release in case.releases}
    for name, version in case.stack.frameworks.items():
        if name not in known:
            yield Finding(STEP, "minor", reason("compatibility.release_unknown", framework=name, version=version))
    for release in case.releases:
        yield from _check_capability(case, release)
        if case.torch and case.wheel:
            yield from _check_pin(case, release)
            yield from _check_cuda(release, case.wheel)
            yield from _check_prebuilt(release, case.wheel)


def _values(release: Release) -> dict[str, str]:
    return {"framework": release.framework, "version": str(release.version)}


def _check_capability(case: Case, release: Release) -> Iterator[Finding]:
    lowest = release.capability_min
    if lowest and case.capability < lowest:
        values = {**_values(release), "gpu": case.machine.gpu.name, "lowest": pair_text(lowest)}
        symptom = _CAPABILITY_SYMPTOMS.get(release.framework, "no-kernel-image")
        fix = reason("compatibility.fix.other_gpu")
        yield Finding(STEP, "refused", Reason("compatibility.capability_below", values), symptom=symptom, fix=fix)


def _check_pin(case: Case, release: Release) -> Iterator[Finding]:
    assert case.torch
    if not release.torch.contains(case.torch, prereleases=True):
        values = {**_values(release), "torch": str(case.torch), "range": str(release.torch)}
        fix = reason("compatibility.fix.separate_environment", **_values(release))
        yield Finding(STEP, "refused", Reason("compatibility.torch_pin", values), fix=fix)


def _check_cuda(release: Release, wheel: TorchWheel) -> Iterator[Finding]:
    values = {**_values(release), "cuda": pair_text(wheel.cuda)}
    if release.cuda_builds:
        same_major = [cuda for cuda in release.cuda_builds if cuda[0] == wheel.cuda[0]]
        if not same_major:
            built = ", ".join(map(pair_text, release.cuda_builds))
            yield Finding(
                STEP,
                "refused",
                Reason("compatibility.cuda_major", {**values, "built": built}),
                symptom="libcudart-missing",
                fix=reason("compatibility.fix.same_major", **_values(release)),
            )
        elif min(abs(cuda[1] - wheel.cuda[1]) for cuda in same_major) > _PUBLISHED_MINORS_APART:
            yield Finding(STEP, "minor", Reason("compatibility.cuda_pair_unpublished", values))
    if not _within(wheel.cuda, release):
        symptom = "bnb-no-binary" if release.framework == "bitsandbytes" else None
        fix = reason("compatibility.fix.same_major", **_values(release))
        yield Finding(STEP, "refused", Reason("compatibility.cuda_range", values), symptom=symptom, fix=fix)


def _within(cuda: Pair, release: Release) -> bool:
    return (release.cuda_min or cuda) <= cuda <= (release.cuda_max or cuda)


def _check_prebuilt(release: Release, wheel: TorchWheel) -> Iterator[Finding]:
    if release.prebuilt_torch and wheel.torch not in release.prebuilt_torch:
        values = {**_values(release), "torch": pair_text(wheel.torch), "newest": pair_text(max(release.prebuilt_torch))}
        fix = reason("compatibility.fix.build_from_source", **_values(release))
        yield Finding(STEP, "minor", Reason("compatibility.source_build", values), symptom="flash-attn-abi", fix=fix)


def check_own_cuda(case: Case) -> Iterator[Finding]:
    """A framework that stands alone (PaddlePaddle, TensorFlow) brings its own CUDA: some build of it must run on the driver."""
    if case.torch:
        return
    for release in case.releases:
        builds = sorted(release.cuda_builds, reverse=True)
        running = [cuda for cuda in builds if (floor := case.tables.floor(cuda)) and case.driver >= floor]
        if builds and not running:
            values = {**_values(release), "driver": case.machine.driver, "cuda": pair_text(builds[-1])}
            needed = case.tables.floor(builds[-1])
            fix = reason("compatibility.fix.newer_driver", driver=driver_text(needed) if needed else "?")
            yield Finding(
                "driver",
                "refused",
                Reason("compatibility.framework_needs_driver", values),
                symptom="driver-insufficient",
                fix=fix,
            )
        elif running:
            values = {**_values(release), "driver": case.machine.driver, "cuda": pair_text(running[0])}
            needed = case.tables.toolkit_driver(running[0])
            level: Level = "full" if needed and case.driver >= needed else "minor"
            yield Finding("driver", level, Reason("compatibility.framework_cuda", values))
