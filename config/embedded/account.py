"""Under whom the embedded servers run, and in which directories.

An ordinary user runs them as itself, below the project's own `var/`. Root must not: PostgreSQL refuses to run as root, and the
project may lie below a directory that nobody else may enter (/root). There the servers run under a system account, and
everything lies below state_root(). A directory that we did not make is never changed, only refused with a reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STATE_ROOT = Path("/var/lib/rackrent")
ACCOUNT_NAME = "rackrent"

# sun_path holds 108 bytes with its end mark on Linux and 104 on macOS; "/.s.PGSQL.5432.lock" is the longest name put in the directory.
SOCKET_DIRECTORY_MAX_BYTES = 104 - 1 - len("/.s.PGSQL.5432.lock")

# PostgreSQL and its clients read a list of directories where we give one.
LIST_MARKS = frozenset(',"\\')


class EmbeddedError(RuntimeError):
    """An embedded server cannot run here; the text says why and what to do about it."""


@dataclass(frozen=True)
class Account:
    """The user and group ids that a server runs under."""

    uid: int
    gid: int

    @property
    def is_own(self) -> bool:
        return self.uid == os.geteuid()


def service_account() -> Account:
    """The account for the servers: ourselves, or, when we are root, the system account (made when missing).

    RACKRENT_SYSTEM_USER names another existing account than the default.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    name = os.environ.get("RACKRENT_SYSTEM_USER", ACCOUNT_NAME)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        _create_system_account(name)
        entry = pwd.getpwnam(name)
    if entry.pw_uid == 0:
        raise EmbeddedError(
            f"The system user {name!r} is root; PostgreSQL refuses that. Name another one in RACKRENT_SYSTEM_USER."
        )
    return Account(entry.pw_uid, entry.pw_gid)


def _create_system_account(name: str) -> None:
    remedy = f"Create it (useradd --system {name}), name another account in RACKRENT_SYSTEM_USER, or start Rackrent as an ordinary user."
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if useradd is None:
        raise EmbeddedError(
            f"PostgreSQL cannot run as root, and there is no useradd to make the system user {name!r}. {remedy}"
        )
    command = [
        useradd,
        "--system",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
        "--shell",
        "/usr/sbin/nologin",
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # 9: the name exists. Two starts at once may both have found it missing.
    if done.returncode not in (0, 9):
        raise EmbeddedError(f"useradd could not make the system user {name!r}: {done.stderr.strip()}. {remedy}")


def state_root() -> Path:
    """Root's directory for all of it: RACKRENT_DATA_DIR (a volume of a container, say) or STATE_ROOT."""
    chosen = os.environ.get("RACKRENT_DATA_DIR")
    return Path(chosen).resolve() if chosen else STATE_ROOT


def data_home(project: Path) -> Path:
    """Where an installation keeps its data: RACKRENT_DATA_DIR, else `var/` of the project, or, for root, a directory of our own."""
    if "RACKRENT_DATA_DIR" in os.environ:
        return state_root()
    if os.geteuid() != 0:
        return project.resolve() / "var"
    return STATE_ROOT / path_digest(project)


def server_home(data_dir: Path) -> Path:
    """`data_dir` itself, or, for root with a directory elsewhere, its stand-in below state_root() that the system account can reach."""
    resolved = data_dir.resolve()
    if os.geteuid() != 0 or resolved.is_relative_to(state_root()):
        return resolved
    return state_root() / f"{path_digest(resolved)}-{resolved.name}"[:64]


def path_digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]


def socket_directory(home: Path) -> Path:
    """`home/run` where a socket in it can be named, else a short directory that is the same at every start."""
    inside = home / "run"
    if len(os.fsencode(inside)) <= SOCKET_DIRECTORY_MAX_BYTES and not LIST_MARKS & set(str(inside)):
        return inside
    return Path(tempfile.gettempdir()).resolve() / f"rackrent-{os.geteuid()}-{path_digest(home)}"


def make_private(path: Path, account: Account, *, mode: int = 0o700, tolerated: int | None = None) -> Path:
    """Make the directory `path` for `account`; one that is there already must be theirs and no more open than `tolerated` (or `mode`).

    Raises EmbeddedError where it is not: it may be another user's trap, and we never change what we did not make.
    """
    _make_parents(path)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        _require_private(path, account, tolerated or mode)
    else:
        path.chmod(mode)
        if not account.is_own:
            os.chown(path, account.uid, account.gid)
    return path


def _make_parents(path: Path) -> None:
    """The missing ones only; the system account has to pass those that root makes."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o755 if os.geteuid() == 0 else 0o700, exist_ok=True)


def _require_private(path: Path, account: Account, tolerated: int) -> None:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        raise EmbeddedError(f"{path} is not a directory. Move it away and start again.")
    if found.st_uid != account.uid:
        raise EmbeddedError(
            f"{path} belongs to user {found.st_uid}, not {account.uid}. Move it away, or set RACKRENT_DATA_DIR to another place."
        )
    if mode & ~tolerated & 0o077:
        raise EmbeddedError(
            f"{path} is open to other users (mode {mode:o}). Close it (chmod {mode & tolerated:o}) and start again."
        )


def make_home(home: Path, *, tolerated: int = 0o700) -> Path:
    """The directory around a server's data: ours alone, and for root passable (not readable) for the system account.

    `tolerated`: how open one may be that an ordinary user made before.
    """
    own = Account(os.geteuid(), os.getegid())
    if own.uid != 0:
        return make_private(home, own, tolerated=tolerated)
    root = make_private(state_root(), own, mode=0o755)
    require_passable(root)
    if home == root:
        return root
    for parent in reversed(home.relative_to(root).parents[:-1]):
        make_private(root / parent, own, mode=0o711)
    return make_private(home, own, mode=0o711)


def require_passable(directory: Path) -> None:
    """Raise EmbeddedError where the system account could not get to `directory`."""
    for place in (directory, *directory.parents):
        if not place.stat().st_mode & stat.S_IXOTH:
            raise EmbeddedError(
                f"The system user cannot pass {place}. Set RACKRENT_DATA_DIR to a directory that every user may pass."
            )


def random_secret() -> str:
    return secrets.token_urlsafe(32)


def kept_secret(path: Path, make: Callable[[], str] = random_secret) -> str:
    """The secret in `path` (mode 0600), made at the first call; two first calls at once agree on one."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(make())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    try:
        return path.read_text().strip()
    except PermissionError:
        owner = path.stat().st_uid
        raise EmbeddedError(
            f"{path} belongs to user {owner}: start Rackrent as that user, or set RACKRENT_DATA_DIR."
        ) from None
