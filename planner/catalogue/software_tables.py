"""Reads the tables of software and holds them against each other: a pin that leads nowhere is an error when tests run, not on a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from planner.catalogue.gpus import gpus
from planner.catalogue.rows import DATA, CatalogueError, Row, read_rows
from planner.catalogue.software import (
    Architecture,
    Cudnn,
    DriverBranch,
    Kernels,
    Pair,
    Release,
    Software,
    Toolkit,
    TorchWheel,
    minor_of,
    pair_text,
    parse_pair,
)

T = TypeVar("T")


@cache
def software() -> Software:
    """The tables of planner/data. Raises CatalogueError."""
    tables = read_software()
    check_references(tables)
    return tables


def _pair(row: Row, column: str) -> Pair:
    try:
        return parse_pair(row.text(column))
    except ValueError:
        raise row.fault(column, "version like 12.8") from None


def _pair_or_none(row: Row, column: str) -> Pair | None:
    return _pair(row, column) if row.optional_text(column) else None


def _pairs(row: Row, column: str) -> tuple[Pair, ...]:
    try:
        return tuple(parse_pair(cell) for cell in row.optional_text(column).split())
    except ValueError:
        raise row.fault(column, "list of versions like 12.6 12.8") from None


def _version(row: Row, column: str) -> Version:
    try:
        return Version(row.text(column))
    except InvalidVersion:
        raise row.fault(column, "version") from None


def _version_or_none(row: Row, column: str) -> Version | None:
    return _version(row, column) if row.optional_text(column) else None


def _first_number(cell: str) -> int | None:
    """The major of "9.3.0.75" and of ">=9.3,<10"."""
    found = re.search(r"\d+", cell)
    return int(found[0]) if found else None


def _kernels(row: Row, column: str) -> Kernels:
    cells = row.text(column).split()
    try:
        parts = [parse_pair(cell.removesuffix("+PTX")) for cell in cells]
    except ValueError:
        raise row.fault(column, "list of compute capabilities") from None
    ptx = [part for part, cell in zip(parts, cells, strict=True) if cell.endswith("+PTX")]
    return Kernels(tuple(parts), tuple(ptx))


def _toolkit(row: Row) -> Toolkit:
    cuda = _pair(row, "cuda")
    if row.whole("api_version") != cuda[0] * 1000 + cuda[1] * 10:
        raise row.fault("api_version", f"API version of CUDA {cuda[0]}.{cuda[1]}")
    return Toolkit(
        cuda=cuda,
        update=row.whole_or_none("update") or 0,
        driver=_version_or_none(row, "toolkit_driver_linux_x86_64"),
        floor=_version_or_none(row, "minor_compat_min_driver_linux"),
    )


def _driver_branch(row: Row) -> DriverBranch:
    return DriverBranch(row.whole("branch"), _pair(row, "max_cuda"))


def _architecture(row: Row) -> Architecture:
    return Architecture(
        capability=_pair(row, "compute_capability"),
        name=row.text("arch"),
        first_cuda=_pair(row, "min_cuda_toolkit"),
        last_cuda=_pair_or_none(row, "last_cuda_toolkit"),
        first_branch=row.whole("min_driver_branch"),
        last_branch=row.whole_or_none("last_driver_branch"),
        bf16=row.flag("bf16"),
        fp8=row.flag("fp8"),
        fp4=row.flag("fp4"),
    )


def _cudnn(row: Row) -> Cudnn:
    return Cudnn(
        version=_version(row, "cudnn"),
        cuda_major=row.whole("cuda_major"),
        driver=_version(row, "min_driver_linux"),
        lowest=_pair(row, "compute_capability_min"),
        highest=_pair(row, "compute_capability_max"),
    )


def _wheel(row: Row) -> TorchWheel:
    cuda = _pair(row, "cuda")
    if row.text("cuda_tag") != f"cu{cuda[0]}{cuda[1]}":
        raise row.fault("cuda_tag", f"tag of CUDA {cuda[0]}.{cuda[1]}")
    return TorchWheel(
        torch=_pair(row, "torch"),
        tag=row.text("cuda_tag"),
        cuda=cuda,
        is_default=row.flag("is_default_index"),
        stable=row.text("stability") == "stable",
        python_min=_pair(row, "python_min"),
        python_max=_pair(row, "python_max"),
        cudnn=_version(row, "cudnn"),
        nccl=_version_or_none(row, "nccl"),
        kernels=_kernels(row, "compute_capabilities"),
        floor=_version(row, "min_driver"),
    )


def _release(row: Row) -> Release:
    try:
        torch = SpecifierSet(row.optional_text("torch_requires"))
    except InvalidSpecifier:
        raise row.fault("torch_requires", "range of versions") from None
    return Release(
        framework=row.text("framework"),
        version=_version(row, "version"),
        python_min=_pair_or_none(row, "python_min"),
        python_max=_pair_or_none(row, "python_max"),
        cuda_builds=_pairs(row, "cuda_default") + _pairs(row, "cuda_other"),
        cuda_min=_pair_or_none(row, "cuda_min"),
        cuda_max=_pair_or_none(row, "cuda_max"),
        torch=torch,
        prebuilt_torch=_pairs(row, "prebuilt_torch"),
        capability_min=_pair_or_none(row, "compute_capability_min"),
        driver_min=_version_or_none(row, "min_driver_linux"),
        cudnn_major=_first_number(row.optional_text("cudnn")),
        needs=row.optional_text("other_requires"),
        source=row.text("source"),
        confidence=row.text("confidence"),
    )


def _table(name: str, make: Callable[[Row], T], folder: Path) -> list[T]:
    return [make(row) for row in read_rows(name, folder=folder)]


def read_software(folder: Path = DATA) -> Software:
    """Reads the tables and holds them against each other. Raises CatalogueError."""
    wheels = sorted(_table("torch_wheels.csv", _wheel, folder), key=lambda each: (each.torch, each.cuda), reverse=True)
    releases = sorted(_table("frameworks.csv", _release, folder), key=lambda each: each.version, reverse=True)
    names = dict.fromkeys(each.framework for each in releases)
    return Software(
        toolkits=tuple(_table("cuda_driver.csv", _toolkit, folder)),
        branches=tuple(_table("driver_branches.csv", _driver_branch, folder)),
        architectures={each.capability: each for each in _table("arch.csv", _architecture, folder)},
        cudnn=tuple(_table("cudnn.csv", _cudnn, folder)),
        wheels=tuple(wheels),
        releases={name: tuple(each for each in releases if each.framework == name) for name in names},
    )


def check_references(tables: Software) -> None:
    """Raises CatalogueError for the first row that contradicts another."""
    for check in (_check_ranges, _check_toolkits, _check_wheels, _check_default_builds, _check_releases, _check_gpus):
        check(tables)


def _check_ranges(tables: Software) -> None:
    """A range whose end lies before its beginning admits nothing, and would refuse every stack without a word."""
    for name, lowest, highest in _ranges(tables):
        if lowest and highest and lowest > highest:
            raise CatalogueError(f"{name}: {pair_text(lowest)} comes after {pair_text(highest)}")


def _ranges(tables: Software) -> Iterator[tuple[str, Pair | None, Pair | None]]:
    for wheel in tables.wheels:
        yield f"torch_wheels.csv, torch {pair_text(wheel.torch)}, python", wheel.python_min, wheel.python_max
    for release in (each for releases in tables.releases.values() for each in releases):
        name = f"frameworks.csv, {release.framework} {release.version}"
        yield f"{name}, python", release.python_min, release.python_max
        yield f"{name}, cuda", release.cuda_min, release.cuda_max
    for part in tables.architectures.values():
        name = f"arch.csv, {part.name} {pair_text(part.capability)}"
        yield f"{name}, cuda", part.first_cuda, part.last_cuda
        yield f"{name}, driver", (part.first_branch, 0), (part.last_branch, 0) if part.last_branch else None
    for each in tables.cudnn:
        yield f"cudnn.csv, {each.version}, capability", each.lowest, each.highest


def _check_toolkits(tables: Software) -> None:
    drivers = [each.driver for each in tables.toolkits if each.driver]
    if drivers != sorted(drivers):
        raise CatalogueError("cuda_driver.csv: a newer toolkit comes with an older driver")
    for toolkit in tables.toolkits:
        branch = tables.branch(toolkit.driver) if toolkit.driver else None
        if branch and branch.cuda < toolkit.cuda:
            raise CatalogueError(
                f"driver_branches.csv: branch {branch.branch} does not know the CUDA of its own toolkit"
            )


def _check_wheels(tables: Software) -> None:
    for wheel in tables.wheels:
        name = f"torch_wheels.csv, torch {wheel.torch}, {wheel.tag}"
        if (floor := tables.floor(wheel.cuda)) is None:
            raise CatalogueError(f"{name}: cuda_driver.csv has no such CUDA")
        if floor != wheel.floor:
            raise CatalogueError(f"{name}: driver {wheel.floor}, but cuda_driver.csv says {floor}")
        for part in wheel.kernels.cubins:
            known = tables.architectures.get(part)
            if known and not known.first_cuda <= wheel.cuda <= (known.last_cuda or wheel.cuda):
                raise CatalogueError(f"{name}: this CUDA has no compiler for {part}")


def _check_default_builds(tables: Software) -> None:
    for torch in {wheel.torch for wheel in tables.wheels}:
        if sum(wheel.is_default for wheel in tables.wheels if wheel.torch == torch) != 1:
            raise CatalogueError(f"torch_wheels.csv: torch {torch} needs exactly one build on the default index")
    for release in tables.releases["pytorch"]:
        wheel = tables.wheel(minor_of(release.version), None)
        if wheel is None or wheel.cuda != release.cuda_builds[0]:
            raise CatalogueError(f"frameworks.csv: torch {release.version} and torch_wheels.csv name different builds")


def _check_releases(tables: Software) -> None:
    cudas = {each.cuda for each in tables.toolkits}
    torches = torch_versions(tables)
    for releases in tables.releases.values():
        for release in releases:
            name = f"frameworks.csv, {release.framework} {release.version}"
            if unknown := set(release.cuda_builds) - cudas:
                raise CatalogueError(f"{name}: cuda_driver.csv has no CUDA {unknown}")
            if release.cuda_builds and release.driver_min not in {None, tables.floor(release.cuda_builds[0])}:
                raise CatalogueError(f"{name}: driver {release.driver_min} is not what its CUDA needs")
            if not any(release.torch.contains(torch) for torch in torches):
                raise CatalogueError(f"{name}: torch_wheels.csv has no torch {release.torch}")


def _check_gpus(tables: Software) -> None:
    for gpu in gpus().values():
        if gpu.compute_capability and gpu.compute_capability not in tables.architectures:
            raise CatalogueError(f"gpus.csv, {gpu.id}: arch.csv has no compute capability {gpu.compute_capability}")


def torch_versions(tables: Software) -> list[Version]:
    """The torch versions that rows name: torch's own, and those that frameworks pin. Newest first; only with a wheel."""
    pinned = {
        Version(pin.version)
        for releases in tables.releases.values()
        for release in releases
        for pin in release.torch
        if pin.operator == "=="
    }
    named = pinned | {release.version for release in tables.releases["pytorch"]}
    return sorted((each for each in named if tables.wheel(minor_of(each), None)), reverse=True)
