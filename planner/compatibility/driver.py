"""The driver against the GPU and against the CUDA of the wheel; the GPU against the wheel's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from planner.catalogue.software import Pair, Software, driver_text, pair_text
from planner.compatibility.stacks import Case, Finding
from planner.reasons import Reason, reason


def check_gpu(case: Case) -> Iterator[Finding]:
    """A driver from before the GPU's time does not see it; one from after its support ended does not either."""
    part = case.architecture
    values = {"driver": case.machine.driver, "gpu": case.machine.gpu.name}
    first = max(part.first_branch, int(case.machine.gpu.driver_branch_min or 0))
    if case.driver.major < first:
        fix = reason("compatibility.fix.newer_driver", driver=str(first))
        yield Finding("driver", "refused", Reason("compatibility.driver_before_gpu", values), fix=fix)
    if part.last_branch and case.driver.major > part.last_branch:
        fix = reason("compatibility.fix.older_branch", branch=part.last_branch)
        yield Finding("driver", "refused", Reason("compatibility.driver_after_gpu", values), fix=fix)


def check_driver(case: Case) -> Iterator[Finding]:
    """Full, another minor of the same CUDA major, or refused."""
    if case.wheel is None:
        return
    found = driver_finding(case.tables, case.machine.driver, case.driver, case.wheel.cuda, case.wheel.floor)
    refused = found.level == "refused"
    yield replace(found, symptom="driver-too-old-torch", fix=_driver_fix(case)) if refused else found


def driver_finding(tables: Software, driver: str, version: Version, cuda: Pair, floor: Version) -> Finding:
    """A driver (as it is written, and parsed) against a CUDA release that needs at least `floor`."""
    values = {"driver": driver, "cuda": pair_text(cuda), "floor": driver_text(floor)}
    needed = tables.toolkit_driver(cuda)
    if version < floor:
        fix = reason("compatibility.fix.newer_driver", driver=driver_text(floor))
        found = Reason("compatibility.driver_below_floor", values)
        return Finding("driver", "refused", found, symptom="driver-insufficient", fix=fix)
    if needed and version >= needed:
        return Finding("driver", "full", Reason("compatibility.driver_full", values))
    values["needed"] = driver_text(needed) if needed else "?"
    return Finding("driver", "minor", Reason("compatibility.driver_minor", values))


def _driver_fix(case: Case) -> Reason:
    """The newest build of the same torch that the driver runs, where there is one; else an older torch or another host."""
    assert case.wheel
    for other in case.tables.wheels:
        if (
            other.torch == case.wheel.torch
            and other.floor <= case.driver
            and other.kernels.compiled_for(case.capability)
        ):
            return reason("compatibility.fix.other_tag", tag=other.tag, torch=case.stack.torch or "")
    return reason("compatibility.fix.newer_driver", driver=driver_text(case.wheel.floor))


def check_kernels(case: Case) -> Iterator[Finding]:
    wheel = case.wheel
    if wheel is None or wheel.kernels.compiled_for(case.capability) or wheel.kernels.compilable_for(case.capability):
        return
    values = {
        "gpu": case.machine.gpu.name,
        "capability": pair_text(case.capability),
        "torch": case.stack.torch or "",
        "tag": wheel.tag,
    }
    yield Finding(
        "kernels",
        "refused",
        Reason("compatibility.no_kernels", values),
        symptom="no-kernel-image",
        fix=_kernel_fix(case),
    )


def _kernel_fix(case: Case) -> Reason:
    """The newest build that has kernels for the part and that the driver runs."""
    for other in case.tables.wheels:
        if other.kernels.compiled_for(case.capability) and other.floor <= case.driver:
            torch = pair_text(other.torch)
            return reason("compatibility.fix.other_build", tag=other.tag, torch=torch)
    return reason("compatibility.fix.other_gpu")


def check_ptx(case: Case) -> Iterator[Finding]:
    """Minor-version compatibility runs compiled code; it does not teach the driver to compile newer PTX."""
    wheel = case.wheel
    if wheel is None or case.driver < wheel.floor:
        return
    needed = case.tables.toolkit_driver(wheel.cuda)
    if needed is None or case.driver >= needed:
        return
    only_ptx = not wheel.kernels.compiled_for(case.capability) and wheel.kernels.compilable_for(case.capability)
    certain = only_ptx or case.needs.ptx
    if certain or case.needs.ptx is None:
        yield Finding(
            "ptx",
            "refused" if certain else "ptx-risk",
            reason(
                "compatibility.ptx", driver=case.machine.driver, cuda=pair_text(wheel.cuda), needed=driver_text(needed)
            ),
            symptom="ptx-unsupported-toolchain",
            fix=reason("compatibility.fix.newer_driver", driver=driver_text(needed)),
        )
