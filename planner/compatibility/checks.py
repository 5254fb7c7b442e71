"""Holds a stack against the tables, in the order in which a program would meet the faults."""

from __future__ import annotations

from planner.catalogue.software import Pair, Software, minor_of
from planner.catalogue.software_tables import software
from planner.compatibility.driver import check_driver, check_gpu, check_kernels, check_ptx
from planner.compatibility.frameworks import check_frameworks, check_own_cuda
from planner.compatibility.machine import check_image, check_several_gpus
from planner.compatibility.stacks import Case, Check, Finding, Machine, Needs, Stack, parse_version
from planner.compatibility.toolchain import check_cudnn, check_nccl, check_python, check_toolkit, check_types
from planner.reasons import reason

CHECKS: tuple[Check, ...] = (
    check_gpu,
    check_driver,
    check_kernels,
    check_ptx,
    check_own_cuda,
    check_frameworks,
    check_cudnn,
    check_nccl,
    check_python,
    check_types,
    check_toolkit,
    check_image,
    check_several_gpus,
)


def check_stack(
    machine: Machine, stack: Stack, needs: Needs | None = None, *, tables: Software | None = None
) -> tuple[Finding, ...]:
    """What does not fit, first the fault that a program would meet first; a stack that fits has only the driver's finding "full".

    Raises StackError for a version that cannot be read. These tables say nothing about parts that are not NVIDIA's.
    """
    capability = machine.gpu.compute_capability
    if capability is None:
        return (Finding("driver", "minor", reason("compatibility.not_nvidia", gpu=machine.gpu.name)),)
    case = _case(machine, stack, needs or Needs(), tables or software(), capability)
    if case.torch and case.wheel is None:
        tag = stack.cuda_tag or "default"
        return (Finding("frameworks", "refused", reason("compatibility.no_wheel", torch=str(case.torch), tag=tag)),)
    return tuple(finding for check in CHECKS for finding in check(case))


def _case(machine: Machine, stack: Stack, needs: Needs, tables: Software, capability: Pair) -> Case:
    for name, version in stack.frameworks.items():
        parse_version(name, version)
    torch = parse_version("torch", stack.torch) if stack.torch else None
    return Case(
        machine=machine,
        stack=stack,
        needs=needs,
        tables=tables,
        capability=capability,
        architecture=tables.architectures[capability],
        driver=parse_version("driver", machine.driver),
        torch=torch,
        wheel=tables.wheel(minor_of(torch), stack.cuda_tag) if torch else None,
    )
