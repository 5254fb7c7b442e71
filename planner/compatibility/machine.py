"""The container image against the driver, and what several GPUs need of a machine."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.gpus import MIB
from planner.catalogue.software import pair_text
from planner.compatibility.stacks import Case, Finding, parse_minor
from planner.reasons import Reason, reason

# Docker's own size of /dev/shm.
SMALL_SHARED_MEMORY_BYTES = 64 * MIB


def check_image(case: Case) -> Iterator[Finding]:
    """The image's label is compared with what the driver's branch knows, which is stricter than minor-version compatibility."""
    branch = case.tables.branch(case.driver)
    if case.stack.image_cuda is None or branch is None:
        return
    wanted = parse_minor("image_cuda", case.stack.image_cuda)
    if wanted <= branch.cuda:
        return
    values = {"image": pair_text(wanted), "driver": case.machine.driver, "cuda": pair_text(branch.cuda)}
    if case.stack.image_has_compat_libraries:
        if case.machine.gpu.is_geforce:
            fix = reason("compatibility.fix.no_compat_libraries")
            found = Reason("compatibility.forward_geforce", values)
            yield Finding("image", "refused", found, symptom="forward-compat-804", fix=fix)
        return
    fix = Reason("compatibility.fix.image_tag", values)
    yield Finding(
        "image", "refused", Reason("compatibility.image_label", values), symptom="container-requirement", fix=fix
    )


def check_several_gpus(case: Case) -> Iterator[Finding]:
    machine = case.machine
    if machine.gpus < 2:
        return
    if without_peer_access(case):
        fix = reason("compatibility.fix.no_peer")
        found = reason("compatibility.no_peer", gpu=machine.gpu.name)
        yield Finding("several-gpus", "minor", found, symptom="rtx40-p2p", fix=fix)
    if machine.shared_memory_bytes is not None and machine.shared_memory_bytes <= SMALL_SHARED_MEMORY_BYTES:
        fix = reason("compatibility.fix.shared_memory")
        found = reason("compatibility.shared_memory", mebibytes=machine.shared_memory_bytes // MIB)
        yield Finding("several-gpus", "refused", found, symptom="nccl-shm", fix=fix)
    if machine.gpu.interconnect.startswith("NVSwitch") and machine.fabric_manager_runs is False:
        fix = reason("compatibility.fix.fabric_manager")
        yield Finding("several-gpus", "refused", reason("compatibility.fabric_manager"), symptom="fabric-802", fix=fix)


def without_peer_access(case: Case) -> bool:
    return case.machine.gpu.peer.startswith("none")
